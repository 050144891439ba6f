// What an operator does with a topic. Every act is asked about first.

import { request, topicPath } from "../app/api.js";
import { may } from "../app/rights.js";
import { h, put } from "../parts/dom.js";
import { counted } from "../parts/format.js";
import { act } from "./acting.js";
import { placeOf } from "./topic_tables.js";

export function actions(name) {
  const element = h("div", { class: "buttons", role: "group", "aria-label": "Actions" });
  let topic = null;
  let drawn = "";
  const common = { name, kind: "topics", refused: () => draw() };

  const trim = () =>
    act({
      ...common, right: "operate",
      title: `Trim ${name}?`,
      text: "Older messages are deleted, in all partitions. This cannot be undone.",
      fields: [{ name: "minutes", label: "Delete what is older than, minutes", type: "number", min: 0, step: "any", required: true, value: 60 }],
      typed: name,
      action: "Trim",
      isDangerous: true,
      run: ({ minutes }) => request("POST", topicPath(name, "/trim"), { body: placeOf("time", minutes) }),
      done: ({ deleted }) => `${counted(deleted, "message")} deleted.`,
    });
  const close = () =>
    act({
      ...common, right: "administer",
      title: `Close ${name}?`,
      text: "It takes no more messages. Those that it has can still be read. This cannot be undone.",
      typed: name,
      action: "Close the topic",
      isDangerous: true,
      run: () => request("POST", topicPath(name, "/close")),
      done: () => `${name} is closed.`,
    });
  const remove = async () => {
    const isDone = await act({
      ...common, right: "administer",
      title: `Delete ${name}?`,
      text: "The topic is deleted with all its messages and groups. This cannot be undone.",
      typed: name,
      action: "Delete the topic",
      isDangerous: true,
      run: () => request("DELETE", topicPath(name)),
      done: () => `${name} was deleted.`,
    });
    if (isDone) location.hash = "#/";
  };

  const button = (label, onclick, kind = "") => h("button", { type: "button", class: kind, onclick }, label);
  function draw() {
    if (!topic) return;
    const mayOperate = may("operate", "topics", name);
    const mayAdminister = may("administer", "topics", name);
    const wanted = JSON.stringify([mayOperate, mayAdminister, topic.is_closed]);
    if (wanted === drawn) return;
    drawn = wanted;
    put(
      element,
      mayOperate && button("Trim", trim, "danger"),
      mayAdminister && [!topic.is_closed && button("Close", close, "danger"), button("Delete", remove, "danger")],
    );
  }

  return {
    element,
    show(now) {
      topic = now;
      draw();
    },
  };
}
