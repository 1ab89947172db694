// Draws how far a run is. Data become text nodes only: nothing here parses markup.
function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function render({ model, el }) {
  const root = element("div", undefined, "wb-view");
  root.setAttribute("aria-live", "polite");
  const draw = () => {
    const counts = Object.entries(model.get("counts")).sort(([a], [b]) => (a < b ? -1 : 1));
    const head = element("p");
    head.append(element("b", model.get("title")), element("span", ` ${model.get("state")}`));
    const tally = element("p", counts.map(([kind, n]) => `${n} ${kind}`).join(" · "));
    const latest = element("ul");
    for (const line of model.get("latest")) latest.append(element("li", line));
    const parts = [head, tally, latest];
    if (model.get("lines").length) parts.push(element("pre", model.get("lines").join("\n")));
    root.replaceChildren(...parts);
  };
  for (const name of ["counts", "state", "latest", "lines"]) model.on(`change:${name}`, draw);
  draw();
  el.append(root);
}

export default { render };
