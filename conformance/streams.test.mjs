// The suite as the package has it, whole. Its own command finds no tests in an installed package.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"

runConformanceTests({
  baseUrl: process.env.STREAMS_URL,
  longPollTimeoutMs: 2000,
  subscriptions: true,
})
