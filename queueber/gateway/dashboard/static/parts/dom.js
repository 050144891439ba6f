// Elements. Text is always text: nothing here, or anywhere in the dashboard, reads HTML.

const SVG = "http://www.w3.org/2000/svg";

// h("p", { class: "muted", onclick: f }, "text", element, null)
export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (name === "checked") element.checked = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Makes the children of an element those of the rows, in order, and keeps those that are there
// already: focus, selections and hover stay. `make` gets the row and returns { element, update }.
export function keyed(parent, rows, keyOf, make) {
  const known = (parent.keyedRows ??= new Map());
  const wanted = new Set();
  let at = parent.firstElementChild;
  for (const row of rows) {
    const key = keyOf(row);
    wanted.add(key);
    let entry = known.get(key);
    if (!entry) known.set(key, (entry = make(row)));
    entry.update?.(row);
    if (entry.element === at) at = at.nextElementSibling;
    else parent.insertBefore(entry.element, at);
  }
  for (const [key, entry] of known) {
    if (wanted.has(key)) continue;
    entry.element.remove();
    known.delete(key);
  }
}
