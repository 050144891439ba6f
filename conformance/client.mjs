// The TypeScript client of Durable Streams, driven by tests: `node client.mjs COMMAND URL ...`.
// Each command prints lines of JSON. What cannot be done ends it with 1 and the reason.
import { DurableStream, IdempotentProducer, stream } from "@durable-streams/client"

const RETRY_MS = 100
const APPEND_MS = 15
const BACKOFF = { initialDelay: RETRY_MS, maxDelay: 500, multiplier: 1.3 }
const encoder = new TextEncoder()
const decoder = new TextDecoder()

const print = (value) => process.stdout.write(JSON.stringify(value) + "\n")
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

// --- one after the other --------------------------------------------------------------------------

/** Everything that a stream of bytes can do, and what came of it. */
async function bytes(url) {
  const handle = await DurableStream.create({ url, contentType: "application/octet-stream" })
  await handle.append(encoder.encode("one "))
  await handle.append(Uint8Array.from([0, 255, 10, 13]))
  const read = await (await handle.stream({ live: false })).body()
  const head = await handle.head()
  const { finalOffset } = await handle.close({ body: encoder.encode("end") })
  const closed = await DurableStream.head({ url })
  const refused = await handle.append(encoder.encode("more")).catch((error) => error.status)
  const rest = await (await stream({ url, offset: head.offset, live: false })).text()
  await handle.delete()
  print({
    read: [...read],
    contentType: head.contentType,
    streamClosed: [head.streamClosed, closed.streamClosed],
    isFinalOffset: closed.offset === finalOffset,
    refused,
    rest,
    exists: (await DurableStream.head({ url })).exists,
  })
}

/** JSON: values of one append, of several, and an array as a value. */
async function json(url) {
  const handle = await DurableStream.create({ url, contentType: "application/json" })
  await handle.append(JSON.stringify({ n: 1 }))
  await Promise.all([2, 3, 4].map((n) => handle.append(JSON.stringify({ n }))))
  await handle.append(JSON.stringify([5, 6]))
  const first = await handle.stream({ live: false })
  const values = await first.json()
  const after = await (await handle.stream({ offset: first.offset, live: false })).json()
  print({ values, after, upToDate: first.upToDate })
}

/** Follows a stream, live, from its beginning until it is closed, while it is written. */
async function follow(url, live, contentType) {
  const isJson = contentType === "application/json"
  const handle = await DurableStream.create({ url, contentType })
  await handle.append(isJson ? JSON.stringify("before") : "before")
  const reading = await stream({ url, offset: "-1", live, json: isJson })
  const seen = []
  const followed = new Promise((done) => {
    const take = (values, isLast) => {
      seen.push(...values)
      if (isLast) done()
    }
    if (isJson) reading.subscribeJson((batch) => take(batch.items, batch.streamClosed))
    else reading.subscribeBytes((chunk) => take([decoder.decode(chunk.data)], chunk.streamClosed))
  })
  for (const text of ["first", "second\r\nline"]) {
    await sleep(50)
    await handle.append(isJson ? JSON.stringify(text) : text)
  }
  await sleep(50)
  await handle.close({ body: isJson ? JSON.stringify("last") : "last" })
  // The client says `closed` before it has given the last batch of a long poll away.
  await Promise.all([followed, reading.closed])
  print({ seen: isJson ? seen : seen.join(""), streamClosed: reading.streamClosed })
}

// --- while processes are killed -------------------------------------------------------------------

/** Append numbers from 0 on with a producer, whose requests are sent again until one is answered. */
async function write(url, count) {
  const handle = await DurableStream.create({
    url,
    contentType: "application/json",
    fetch: fetchAgain,
  })
  const producer = new IdempotentProducer(handle, "numbers", {
    fetch: fetchAgain,
    lingerMs: 0,
    onError: fail,
  })
  for (let number = 0; number < Number(count); number++) {
    producer.append(JSON.stringify(number))
    await sleep(APPEND_MS)
    if (number % 10 === 9) {
      await producer.flush()
      print({ written: number + 1 })
    }
  }
  await producer.close()
  print({ closed: true })
}

/** The producer itself sends each request once: whether to send it again is left to its fetch. */
async function fetchAgain(...request) {
  for (;;) {
    try {
      const answer = await fetch(...request)
      if (answer.status < 500) return answer
      await answer.arrayBuffer()
    } catch (error) {
      if (request[1]?.signal?.aborted) throw error
    }
    await sleep(RETRY_MS)
  }
}

/** Follow a stream until it is closed; after an error go on where the last batch ended. */
async function read(url, live) {
  let offset = "-1"
  for (let isClosed = false; !isClosed; ) {
    try {
      const reading = await stream({ url, offset, live, json: true, backoffOptions: BACKOFF })
      reading.subscribeJson((batch) => {
        offset = batch.offset
        print({ items: batch.items })
      })
      await reading.closed
      isClosed = reading.streamClosed
    } catch (error) {
      print({ interrupted: String(error) })
    }
    if (!isClosed) await sleep(RETRY_MS)
  }
}

function fail(error) {
  process.stderr.write(`${error?.stack ?? error}\n`)
  process.exit(1)
}

const commands = { bytes, json, follow, write, read }
const [command, ...given] = process.argv.slice(2)
await commands[command](...given).catch(fail)
