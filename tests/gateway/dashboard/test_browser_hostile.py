"""Contents, keys, errors, attributes and names are untrusted: nothing in them ever runs."""

from collections.abc import Callable
from typing import Any

import queueber
from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess

Open = Callable[..., Any]

SCRIPTS = (
    "<script>window.ran = true</script>",
    "<img src=x onerror='window.ran = true'>",
    "<svg onload='window.ran = true'>",
    "<iframe srcdoc='<script>parent.ran = true</script>'></iframe>",
    "javascript:window.ran=true",
    "'\"><script>window.ran = true</script>",
    "{{constructor.constructor('window.ran = true')()}}",
)
PLANTED = " ".join(SCRIPTS)
ELEMENTS = (
    "script:not([src]), iframe, img, object, embed, [onerror], [onload], a[href^='javascript']"
)


def has_run(page: Any) -> bool:
    """Whether anything ran, or became an element."""
    found: bool = page.evaluate(
        "(elements) => window.ran === true || document.querySelector(elements) !== null", ELEMENTS
    )
    return found


def test_nothing_that_is_planted_in_a_queue_runs(
    gateway: GatewayProcess, open_page: Open, server: ServerProcess, client: queueber.Client
) -> None:
    name = PLANTED[:250]
    client.create_queue("hostile", attempts_max=1)
    with queueber.connect(server.address, name=name) as hostile:
        queue = hostile.queue("hostile")
        planted = {
            "key": PLANTED,
            "attributes": {PLANTED: PLANTED},
            "batch": PLANTED[:250],
        }
        queue.add(PLANTED.encode(), **planted)  # type: ignore[arg-type]
        queue.poll().fail(PLANTED)
        for script in SCRIPTS:
            queue.add(script.encode(), batch=script, attributes={script: script})
        queue.poll(2, lease=600)
        page = open_page(gateway, "#/queues/hostile/dead")

        page.locator(".item").wait_for()
        assert page.locator(".item .error").inner_text() == PLANTED
        assert PLANTED in page.locator(".item .facts").inner_text()
        for form in ("JSON", "Hex", "Text"):
            page.get_by_role("button", name=form).click()
            assert not has_run(page)
        assert page.locator(".item pre").inner_text() == PLANTED
        for tab, shown in (("Leases", name), ("Batches", SCRIPTS[0]), ("Items", SCRIPTS[3])):
            page.get_by_role("link", name=tab).click()
            page.get_by_text(shown).first.wait_for()
            assert not has_run(page)
        page.goto(f"http://{gateway.address}/#/")
        page.locator('tr[data-name="hostile"]').wait_for()
        assert not has_run(page)


def test_nothing_that_is_planted_in_a_topic_runs(
    gateway: GatewayProcess, open_page: Open, client: queueber.Client
) -> None:
    topic = client.topic("hostile")
    topic.create_group(PLANTED[:250])
    for script in (PLANTED, *SCRIPTS):
        message = queueber.NewMessage(script.encode(), script, {script: script})
        topic.publish(message)
    page = open_page(gateway, "#/topics/hostile")

    page.locator(".item").nth(7).wait_for()
    assert PLANTED in page.locator(".item pre").first.inner_text()
    assert not has_run(page)
    page.get_by_role("link", name="Groups").click()
    page.get_by_text(PLANTED[:250]).wait_for()
    page.get_by_role("button", name="Reset").click()
    page.locator("dialog").wait_for()
    assert not has_run(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Live tail").click()
    page.get_by_text("Live", exact=True).wait_for()
    topic.publish(queueber.NewMessage(PLANTED.encode(), PLANTED))
    page.locator(".item pre").wait_for()
    assert not has_run(page)


def test_addresses_and_errors_that_are_planted_do_not_run(
    gateway: GatewayProcess, open_page: Open
) -> None:
    page = open_page(gateway, may_fail=True)
    for script in SCRIPTS:
        for kind in ("queues", "topics"):
            encoded = page.evaluate("encodeURIComponent", script)
            page.goto(f"http://{gateway.address}/#/{kind}/{encoded}")
            page.locator("h1", has_text=script).wait_for()
            assert not has_run(page)
    page.goto(f"http://{gateway.address}/#/queues/%E0%A4%A")
    page.get_by_label("Filter queues").wait_for()


INLINE = """() => new Promise((resolve) => {
  const told = (event) => resolve(event.effectiveDirective);
  document.addEventListener("securitypolicyviolation", told);
  const script = document.createElement("script");
  try {
    script.textContent = "window.ran = true";
  } catch {
    script.append(document.createTextNode("window.ran = true"));
  }
  document.body.append(script);
  setTimeout(() => resolve("nothing was refused"), 2000);
})"""


def test_the_policy_refuses_what_a_mistake_of_ours_would_let_in(
    gateway: GatewayProcess, open_page: Open
) -> None:
    page = open_page(gateway, may_fail=True)
    page.get_by_label("Filter queues").wait_for()

    assert page.evaluate(INLINE) in {"script-src-elem", "require-trusted-types-for"}
    as_html = "document.body.innerHTML = '<img src=x onerror=\"window.ran = true\">'"
    refused = f"(() => {{ try {{ {as_html}; return 'taken' }} catch (e) {{ return e.name }} }})()"
    assert page.evaluate(refused) == "TypeError"
    outside = "fetch('http://127.0.0.1:1/').then(() => 'sent', (error) => error.name)"
    assert page.evaluate(outside) == "TypeError"
    framed = page.evaluate(
        """() => {
          const frame = document.createElement("iframe");
          frame.src = "/";
          document.body.append(frame);
          const title = () => frame.contentDocument?.title ?? "refused";
          return new Promise((resolve) => setTimeout(() => resolve(title()), 500));
        }"""
    )
    assert framed != "Queueber"
    assert page.evaluate("window.ran") is None
