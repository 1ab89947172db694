// Draws what Python chose to show. Data become text nodes only: nothing here parses markup. view_parts.js stands before this.
function diffBox(text) {
  const box = element("pre", undefined, { class: "wb-diff" });
  for (const line of text.split("\n")) {
    const kind = /^(\+\+\+|---)/.test(line) ? "wb-file" : { "+": "wb-plus", "-": "wb-minus", "@": "wb-place" }[line[0]] ?? "";
    box.append(element("span", `${line}\n`, { class: kind }));
  }
  return box;
}

function pictureBox(model, text) {
  const image = element("img", undefined, { alt: text });
  const bytes = model.get("picture");
  if (!bytes?.byteLength) return element("p", text);
  image.src = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
  image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
  return image;
}

const BLOCKS = {
  facts: (model, { rows }) => table(["what", "value"], rows),
  table: (model, { columns, rows }) => table(columns, rows),
  text: (model, { text }) => element("pre", text),
  note: (model, { text }) => element("p", text),
  diff: (model, { text }) => diffBox(text),
  picture: (model, { text }) => pictureBox(model, text),
};

function tabBar(model, set) {
  const bar = element("div", undefined, { class: "wb-bar", role: "tablist" });
  const buttons = model.get("tabs").map((name) => {
    const button = element("button", name, { role: "tab" });
    button.addEventListener("click", () => set("tab", name));
    bar.append(button);
    return button;
  });
  const mark = () => {
    for (const button of buttons) {
      const open = button.textContent === model.get("tab");
      button.setAttribute("aria-selected", String(open));
      button.tabIndex = open ? 0 : -1; // Tab reaches the open one, arrows go to the others
    }
  };
  const step = (by) => {
    const at = buttons.findIndex((button) => button.tabIndex === 0);
    const to = buttons[(at + by + buttons.length) % buttons.length];
    to.focus({ preventScroll: true });
    set("tab", to.textContent);
  };
  const keys = { ArrowRight: () => step(1), ArrowLeft: () => step(-1) };
  return { bar, mark, keys: (target) => (buttons.includes(target) ? keys : null) };
}

function render({ model, el }) {
  const root = element("section", undefined, { class: "wb-view wb-explore", "data-lm-suppress-shortcuts": "true" });
  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  const title = element("b");
  const tabs = tabBar(model, set);
  const choice = listBox({
    label: "entries", rows: () => model.get("items"), chosen: () => model.get("item"), open: (key) => set("item", key), leave: () => set("item", ""),
  });
  const shown = element("div", undefined, { class: "wb-shown" });
  const drawTitle = () => {
    title.textContent = model.get("title");
    root.setAttribute("aria-label", model.get("title"));
    tabs.bar.hidden = model.get("tabs").length < 2;
    tabs.mark();
  };
  const drawItems = () => { choice.list.hidden = !model.get("items").length; choice.draw(); };
  const drawBlocks = () => {
    shown.replaceChildren(...model.get("blocks").flatMap((block) => {
      const made = (BLOCKS[block.kind] ?? BLOCKS.note)(model, block);
      return block.name ? [element("h4", block.name), made] : [made];
    }));
  };
  const release = takeKeys(root, (target) => {
    if (target === choice.list) return choice.keys;
    const keys = tabs.keys(target);
    return keys ?? null;
  });
  const watched = [
    ["change:title", drawTitle], ["change:tab", drawTitle], ["change:items", drawItems], ["change:item", choice.mark],
    ["change:blocks", drawBlocks], ["change:picture", drawBlocks],
  ];
  for (const [name, handler] of watched) model.on(name, handler);
  const body = element("div", undefined, { class: "wb-body" });
  body.append(choice.list, shown);
  root.append(title, tabs.bar, body);
  drawTitle();
  drawItems();
  drawBlocks();
  el.append(root);
  return () => {
    release();
    for (const [name, handler] of watched) model.off(name, handler);
  };
}

export default { render };
