/* Parts of forms that are more than controls: frames put in order, sentences that cite frames, moments on the timeline.
   Each keeps its value as JSON in a hidden control. Texts are set as texts, never as markup. */

import { boxes } from "./boxes.js";
import { timeline } from "./timeline.js";

export function element(name, fields = {}, ...inside) {
  const { data = {}, ...rest } = fields;
  const one = Object.assign(document.createElement(name), rest);
  Object.assign(one.dataset, data);
  one.append(...inside);
  return one;
}

export function marks(form, page) {
  order(form, page);
  rationale(form, page);
  moments(form, page);
  boxes(form, page);
}

const value = (control) => (control.value ? JSON.parse(control.value) : []);

function keeper(control, page, draw) {
  return (some) => {
    control.value = some.length ? JSON.stringify(some) : "";
    draw();
    page.changed();
  };
}

function order(form, page) {
  enlarge(form);
  const strip = form.querySelector("[data-order]");
  if (!strip) return;
  const control = form.querySelector("[data-orders]");
  const [open, done] = ["[data-open]", "[data-ordered]"].map((name) => strip.querySelector(name));
  const frames = [...strip.querySelectorAll("[data-frame]")];
  const ids = frames.map((one) => one.dataset.frame);
  const draw = () => {
    const ordered = value(control);
    const focused = document.activeElement;
    for (const id of [...ordered, ...ids.filter((one) => !ordered.includes(one))]) {
      const one = frames[ids.indexOf(id)];
      const at = ordered.indexOf(id);
      one.querySelector("output").textContent = at < 0 ? "" : strip.dataset.position.replace("{number}", at + 1);
      (at < 0 ? open : done).append(one);
    }
    if (frames.includes(focused)) focused.focus({ preventScroll: true });
  };
  const keep = keeper(control, page, draw);
  const nothing = form.querySelector("[data-nothing]");
  const add = (id) => {
    const ordered = value(control);
    if (ordered.includes(id)) return;
    if (nothing) nothing.checked = false;
    ordered.push(id);
    if (ordered.length === ids.length - 1) ordered.push(ids.find((one) => !ordered.includes(one)));
    keep(ordered);
  };
  form.addEventListener("nothing", () => keep([]));
  let dragged = null;
  strip.addEventListener("click", (event) => { const one = event.target.closest("[data-frame]"); if (one && !event.target.closest("[data-enlarge]")) add(one.dataset.frame); });
  strip.addEventListener("dragstart", (event) => { dragged = event.target.closest("[data-frame]")?.dataset.frame; });
  strip.addEventListener("dragover", (event) => { if (dragged) event.preventDefault(); });
  strip.addEventListener("drop", (event) => {
    const onto = event.target.closest("[data-frame]")?.dataset.frame;
    if (!dragged || !onto || onto === dragged) return;
    event.preventDefault();
    const all = [...value(control), ...ids.filter((id) => !value(control).includes(id))];
    const target = all.indexOf(onto);
    all.splice(all.indexOf(dragged), 1);
    all.splice(target, 0, dragged);
    dragged = null;
    keep(all);
  });
  form.querySelector("[data-clear]").addEventListener("click", () => keep([]));
  form.addEventListener("written", draw);
}

/* A frame as large as the window: by its button, the space bar, or a click where a click does nothing else. */
function enlarge(form) {
  const large = document.querySelector("[data-large]");
  if (!large) return;
  const show = (figure) => {
    const { src, alt } = figure.querySelector("img");
    Object.assign(large.querySelector("img"), { src, alt });
    large.showModal();
  };
  form.addEventListener("click", (event) => {
    const one = event.target.closest("[data-enlarge], figure:not([data-frame]) > img");
    if (one) show(one.closest("figure"));
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("[data-frame]")) return;
    event.preventDefault();
    show(event.target);
  });
  large.addEventListener("click", () => large.close());
}

function rationale(form, page) {
  const list = form.querySelector("[data-rationale]");
  if (!list) return;
  const control = form.querySelector("[data-rationales]");
  const ids = JSON.parse(list.dataset.frames);
  const gather = () => {
    const some = [...list.children].map((row) => ({
      text: row.querySelector("textarea").value,
      frames: [...row.querySelectorAll("[aria-pressed=true]")].map((one) => one.dataset.cited),
    })).filter((one) => one.text.trim() || one.frames.length);
    control.value = some.length ? JSON.stringify(some) : "";
    page.changed();
  };
  const add = (said = { text: "", frames: [] }) => {
    const cited = ids.map((id) => {
      const one = element("button", { type: "button", textContent: id, data: { cited: id } });
      one.setAttribute("aria-pressed", String((said.frames ?? []).includes(id)));
      one.setAttribute("aria-label", `${list.dataset.cite} ${id}`);
      one.addEventListener("click", () => { one.setAttribute("aria-pressed", String(one.getAttribute("aria-pressed") !== "true")); gather(); });
      return one;
    });
    const text = element("textarea", { rows: 2, maxLength: 10000, value: said.text });
    text.setAttribute("aria-label", list.dataset.sentence);
    text.addEventListener("input", gather);
    list.append(element("div", { className: "sentence" }, text, element("div", { className: "choices" }, ...cited)));
    return text;
  };
  form.querySelector("[data-add]").addEventListener("click", () => add().focus());
  form.addEventListener("written", () => {
    list.replaceChildren();
    for (const one of value(control)) add(one);
    if (!list.children.length) add();
  });
}

function moments(form, page) {
  const list = form.querySelector("[data-moments]");
  if (!list) return;
  const control = form.querySelector("[data-marks]");
  const draw = () => {
    const some = value(control);
    list.replaceChildren(...some.map((one, at) => {
      const remove = element("button", { type: "button", textContent: "×", ariaLabel: `${list.dataset.remove} ${one.kind} ${one.time} s` });
      remove.addEventListener("click", () => keep(some.filter((_, other) => other !== at)));
      return element("li", {}, element("button", { type: "button", textContent: `${one.time.toFixed(2)} s`, data: { seek: one.time } }), ` ${one.kind} `, remove);
    }));
    line?.();
  };
  let line = null;
  const keep = keeper(control, page, draw);
  for (const button of form.querySelectorAll("[data-mark]")) {
    button.addEventListener("click", async () => {
      const player = await page.player();
      if (!player) return;
      const time = player.times.time(player.frame); /* not rounded: it leads back to this very picture */
      const some = [...value(control), { time: Math.max(0, time), kind: button.dataset.mark }];
      form.querySelector("[data-nothing]").checked = false;
      keep(some.sort((a, b) => a.time - b.time));
    });
  }
  const kinds = [...form.querySelectorAll("[data-mark]")].map((one) => one.dataset.mark);
  page.player().then((player) => {
    if (player) line = timeline(form, player, { read: () => value(control), keep }, kinds);
  });
  form.addEventListener("nothing", () => keep([]));
  form.addEventListener("written", draw);
}
