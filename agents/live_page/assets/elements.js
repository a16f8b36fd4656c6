// Creates HTML elements. Texts never become markup, because runs of other
// people can contain any text.

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") Object.assign(node.style, value);
    else if (typeof value === "boolean") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// Replaces the children only if they differ, to keep focus and scroll position.
export function replace(parent, ...children) {
  const next = element("div", {}, ...children);
  if (next.innerHTML !== parent.innerHTML) parent.replaceChildren(...next.childNodes);
}

export const byId = id => document.getElementById(id);
