/* Boxes on exact pictures: drawn, moved, resized, copied to the next time, interpolated, named by instance; proposals of a
   detector accepted or refused. A box has the time of its picture, fractions of that picture, and the SHA-256 of the very
   JPEG that it was drawn on.

   The value is the form's hidden control [data-drawn]; [data-decided] holds which proposals were accepted and refused. */

import { element } from "./marks.js";

const LEAST = 0.005;
const STEP = 0.01;
const THUMB = 56;
const ACTS = [
  ["new", "N"], ["copy", "V"], ["fill", "L"], ["remove", "Delete"], ["before", "PageUp"], ["after", "PageDown"],
];
const DECISIONS = [["accept", "P"], ["refuse", "R"]];

const exact = (value) => Math.round(value * 1e5) / 1e5;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const list = (control) => (control?.value ? JSON.parse(control.value) : []);

export function boxes(form, page) {
  const panel = form.querySelector("[data-boxes]");
  if (panel) page.player().then((player) => player && new Boxes(form, page, panel, player));
}

class Boxes {
  constructor(form, page, panel, player) {
    Object.assign(this, { form, page, panel, player, chosen: null, held: null });
    this.open = form.dataset.open === "yes";
    this.words = JSON.parse(panel.dataset.words);
    this.due = JSON.parse(panel.dataset.times);
    this.proposals = JSON.parse(panel.dataset.proposals);
    this.control = form.querySelector("[data-drawn]");
    this.decided = form.querySelector("[data-decided]");
    this.classes = [...form.querySelectorAll("[data-class]")];
    this.build();
    this.listen();
    this.draw();
  }

  /* -- the value */

  get all() { return list(this.control); }

  get decisions() { return { accepted: [], refused: [], ...(this.decided.value ? JSON.parse(this.decided.value) : {}) }; }

  get label() { return this.classes.find((one) => one.checked)?.value ?? this.classes[0].value; }

  keep(some, decisions = this.decisions) {
    this.control.value = some.length ? JSON.stringify(some) : "";
    const any = decisions.accepted.length || decisions.refused.length;
    this.decided.value = any ? JSON.stringify(decisions) : "";
    if (some.length) this.form.querySelector("[data-nothing]").checked = false;
    this.draw();
    this.page.changed();
  }

  change(at, fields) {
    const some = this.all;
    some[at] = { ...some[at], ...fields };
    this.keep(some);
  }

  frameOf(box) { return this.player.times.at(box.time); }

  here(box) { return this.frameOf(box) === this.player.frame; }

  timeAt(frame) { return Math.max(0, this.player.times.time(frame)); }

  /* The hash of the picture of a frame, into all boxes there that have none yet. */
  async sign(frame) {
    const hash = await this.player.sha256(frame);
    const some = this.all;
    const unsigned = some.filter((one) => !one.frame_sha256 && this.frameOf(one) === frame);
    if (!hash || !unsigned.length) return;
    for (const one of unsigned) one.frame_sha256 = hash;
    this.keep(some);
  }

  add(some) {
    const before = this.all;
    this.keep([...before, ...some]);
    for (const frame of new Set(some.map((one) => this.frameOf(one)))) this.sign(frame);
    return before.length;
  }

  box(fields, frame = this.player.frame) {
    return { time: this.timeAt(frame), label: this.label, instance: "", frame_sha256: "", by: "hand", ...fields };
  }

  /* -- what is seen */

  build() {
    const stage = this.player.part("stage");
    this.layer = element("div", { className: "boxes" });
    stage.append(this.layer);
    const button = ([name, key]) => element(
      "button", { type: "button", disabled: !this.open, data: { act: name, key } },
      `${this.words[name]} `, element("kbd", { textContent: key.length > 1 ? key : `⇧ ${key}` }),
    );
    this.name = element("input", { type: "text", maxLength: 80, id: "instance", autocomplete: "off", disabled: !this.open });
    this.known = element("div", { className: "sightings", ariaLabel: this.words.known });
    this.times = element("div", { className: "choices times" });
    this.left = element("p", { className: "note" });
    this.left.setAttribute("role", "status");
    const acts = element("div", { className: "actions" }, ...ACTS.map(button));
    const decisions = element("div", { className: "actions", hidden: !this.proposals.length }, ...DECISIONS.map(button));
    const label = element("label", { htmlFor: "instance" }, this.words.instance);
    this.panel.replaceChildren(acts, decisions, this.left, label, this.name, this.known, this.times);
  }

  draw() {
    const still = this.player.root.dataset.exact === "true";
    this.layer.hidden = !still;
    const [some, decisions] = [this.all, this.decisions];
    if (this.chosen !== null && !(some[this.chosen] && this.here(some[this.chosen]))) this.chosen = null;
    const focused = this.layer.contains(document.activeElement);
    const drawn = some.map((box, at) => (this.here(box) ? this.shape(box, { at }, at === this.chosen) : null));
    const open = this.proposals.map((box, proposal) => (
      this.here(box) && ![...decisions.accepted, ...decisions.refused].includes(proposal)
        ? this.shape(box, { proposal }, false) : null));
    this.layer.replaceChildren(...drawn.filter(Boolean), ...open.filter(Boolean));
    if (this.held?.drawing) this.layer.append(this.shape(this.held.box, { drawing: "" }, true));
    if (focused || this.focusing) this.layer.querySelector(".chosen")?.focus({ preventScroll: true });
    this.focusing = false;
    if (document.activeElement !== this.name) this.name.value = some[this.chosen]?.instance ?? "";
    this.summary(some, decisions);
  }

  shape(box, data, chosen) {
    const kind = this.classes.findIndex((one) => one.value === box.label);
    const name = `${box.label} ${box.instance ?? ""}`.trim();
    const one = element("div", { className: chosen ? "box chosen" : "box", tabIndex: 0, data }, element("span", { textContent: name }));
    const percent = (value) => `${Math.round(value * 100)} %`;
    one.setAttribute("role", "button");
    one.setAttribute("aria-pressed", String(chosen));
    one.setAttribute("aria-label", [name, ...["x", "y", "width", "height"].map((side) => percent(box[side]))].join(", "));
    Object.assign(one.style, {
      left: `${100 * box.x}%`, top: `${100 * box.y}%`, width: `${100 * box.width}%`, height: `${100 * box.height}%`,
    });
    one.style.setProperty("--class", `var(--s${Math.max(kind, 0) % 8})`);
    if (chosen) for (const corner of ["nw", "ne", "sw", "se"]) one.append(element("i", { data: { corner } }));
    return one;
  }

  summary(some, decisions) {
    const left = this.proposals.length - decisions.accepted.length - decisions.refused.length;
    this.left.textContent = left ? this.words.left.replace("{count}", String(left)) : "";
    this.times.replaceChildren(...this.due.slice(0, 200).map((time) => {
      const frame = this.player.times.at(time);
      const count = some.filter((one) => this.frameOf(one) === frame).length;
      const chip = element("button", { type: "button", textContent: `${time.toFixed(1)} s${count ? ` · ${count}` : ""}`, data: { seek: time } });
      if (frame === this.player.frame) chip.setAttribute("aria-current", "time");
      return chip;
    }));
    const last = new Map();
    for (const one of some) if (one.instance && !(last.get(one.instance)?.time > one.time)) last.set(one.instance, one);
    const sightings = JSON.stringify([...last.values()]);
    if (sightings === this.sighted) return;
    this.sighted = sightings;
    this.known.replaceChildren(...[...last].map(([id, box]) => this.sighting(id, box)));
  }

  /* An instance with what it looked like when it was last seen. */
  sighting(id, box) {
    const canvas = element("canvas", { width: THUMB, height: THUMB });
    this.player.picture(this.frameOf(box), true).then((image) => {
      if (!image) return;
      const [width, height] = [image.naturalWidth, image.naturalHeight];
      const part = [box.x * width, box.y * height, box.width * width, box.height * height];
      canvas.getContext("2d").drawImage(image, ...part, 0, 0, THUMB, THUMB);
    });
    return element("button", { type: "button", disabled: !this.open, data: { instance: id } }, canvas, ` ${id}`);
  }

  choose(at, focus = true) {
    this.chosen = at;
    this.focusing = focus;
    this.draw();
  }

  /* -- what is done */

  listen() {
    this.player.root.addEventListener("frame", () => { if (!this.held) this.draw(); });
    this.form.addEventListener("written", () => this.draw());
    this.form.addEventListener("nothing", () => this.keep([]));
    if (!this.open) return;
    this.panel.addEventListener("click", (event) => {
      const [act, instance] = ["act", "instance"].map((name) => event.target.closest(`[data-${name}]`)?.dataset[name]);
      if (act) this.acts[act]();
      else if (instance && this.chosen !== null) this.change(this.chosen, { instance });
    });
    this.name.addEventListener("change", () => {
      if (this.chosen !== null) this.change(this.chosen, { instance: this.name.value.trim() });
    });
    this.name.addEventListener("keydown", (event) => { if (event.key === "Enter") this.name.blur(); });
    for (const one of this.classes) {
      one.addEventListener("change", () => {
        if (this.chosen !== null && one.checked) this.change(this.chosen, { label: one.value });
      });
    }
    this.layer.addEventListener("keydown", (event) => this.key(event));
    this.layer.addEventListener("focusin", (event) => {
      const at = event.target.dataset.at;
      if (at !== undefined && Number(at) !== this.chosen) this.choose(Number(at));
    });
    this.layer.addEventListener("pointerdown", (event) => this.down(event));
    this.layer.addEventListener("pointermove", (event) => { if (this.held) this.move(event); });
    for (const name of ["pointerup", "pointercancel"]) this.layer.addEventListener(name, (event) => this.up(event));
  }

  acts = {
    new: () => this.choose(this.add([this.box({ x: 0.4, y: 0.4, width: 0.2, height: 0.2 })])),
    remove: () => {
      if (this.chosen === null) return;
      const at = this.chosen;
      this.chosen = null;
      this.keep(this.all.filter((_, other) => other !== at));
    },
    copy: async () => {
      const frame = this.next(1);
      if (frame === null) return;
      const some = this.all;
      const mine = (this.chosen === null ? some : [some[this.chosen]]).filter((one) => this.here(one));
      const taken = some.filter((one) => this.frameOf(one) === frame);
      const fresh = mine.filter((one) => !one.instance || !taken.some((other) => alike(one, other)));
      const first = some.length;
      this.add(fresh.map((one) => ({ ...one, time: this.timeAt(frame), frame_sha256: "", by: "copied" })));
      await this.player.step(frame - this.player.wanted);
      if (fresh.length) this.choose(first);
    },
    fill: () => {
      const [some, from] = [this.all, this.all[this.chosen]];
      if (!from) return;
      const mine = some.filter((one) => alike(one, from));
      const to = mine.filter((one) => one.time > from.time).sort((a, b) => a.time - b.time)[0];
      const taken = mine.map((one) => this.frameOf(one));
      if (to) this.add(this.between(from, to).filter((one) => !taken.includes(this.frameOf(one))));
    },
    before: () => this.go(-1),
    after: () => this.go(1),
    accept: () => this.decide("accepted"),
    refuse: () => this.decide("refused"),
  };

  /* The frames on which boxes are due: the form's, or each second from a time on. */
  dueFrames(from) {
    const { times, clip } = this.player;
    if (this.due.length) return [...new Set(this.due.map((time) => times.at(time)))].sort((a, b) => a - b);
    const found = new Set();
    for (let time = from - Math.floor(from - times.time(clip[0])); times.at(time) <= clip[1] && found.size < 20000; time += 1) {
      found.add(times.at(time));
      if (times.at(time) === times.last) break;
    }
    return [...found];
  }

  next(way) {
    const here = this.player.wanted;
    const frames = this.dueFrames(this.player.times.time(here));
    return (way > 0 ? frames.find((one) => one > here) : frames.findLast((one) => one < here)) ?? null;
  }

  go(way) {
    const frame = this.next(way);
    return frame === null ? null : this.player.step(frame - this.player.wanted);
  }

  between(from, to) {
    const [first, last] = [this.frameOf(from), this.frameOf(to)];
    return this.dueFrames(from.time).filter((frame) => frame > first && frame < last).map((frame) => {
      const time = this.timeAt(frame);
      const share = (time - from.time) / (to.time - from.time);
      const part = (name) => exact(from[name] + share * (to[name] - from[name]));
      const extent = { x: part("x"), y: part("y"), width: part("width"), height: part("height") };
      return { ...from, ...extent, time, frame_sha256: "", by: "interpolated" };
    });
  }

  /* The proposal that has the focus, or the first open one on this picture; else goes to the next that is open. */
  decide(how) {
    const decisions = this.decisions;
    const open = this.proposals.map((_, at) => at).filter((at) => ![...decisions.accepted, ...decisions.refused].includes(at));
    const focused = Number(document.activeElement?.dataset.proposal ?? NaN);
    const at = open.includes(focused) ? focused : open.find((one) => this.here(this.proposals[one]));
    if (at === undefined) return open.length ? this.player.seek(this.proposals[open[0]].time) : null;
    decisions[how].push(at);
    const some = this.all;
    if (how === "accepted") some.push({ ...this.proposals[at], time: this.timeAt(this.player.frame), frame_sha256: "", by: "proposal" });
    this.keep(some, decisions);
    return this.sign(this.player.frame);
  }

  key(event) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Escape") { this.choose(null, false); event.target.blur(); return; }
    const box = this.all[this.chosen];
    if (!ways[event.key] || !box) return;
    event.preventDefault();
    const [x, y] = ways[event.key].map((way) => way * (event.ctrlKey ? STEP / 5 : STEP));
    this.change(this.chosen, event.shiftKey ? resized(box, { se: [x, y] }) : moved(box, x, y));
  }

  /* -- pointer and touch */

  at(event) {
    const { left, top, width, height } = this.layer.getBoundingClientRect();
    return [clamp((event.clientX - left) / width, 0, 1), clamp((event.clientY - top) / height, 0, 1)];
  }

  down(event) {
    if (event.button || this.player.moving) return;
    event.preventDefault();
    this.layer.setPointerCapture(event.pointerId);
    const from = this.at(event);
    const on = event.target.closest("[data-at]");
    if (on) {
      const at = Number(on.dataset.at);
      this.held = { from, before: this.all[at], at, corner: event.target.dataset.corner };
      this.choose(at);
    } else {
      this.chosen = null;
      this.held = { from, drawing: true, box: this.box({ x: from[0], y: from[1], width: 0, height: 0 }) };
    }
  }

  move(event) {
    const [held, [x, y]] = [this.held, this.at(event)];
    const [dx, dy] = [x - held.from[0], y - held.from[1]];
    if (held.drawing) held.box = { ...held.box, ...spanned(held.from, [x, y]) };
    else held.box = { ...held.before, ...(held.corner ? resized(held.before, { [held.corner]: [dx, dy] }) : moved(held.before, dx, dy)) };
    if (held.drawing) this.draw();
    else Object.assign(this.layer.querySelector(".chosen")?.style ?? {}, {
      left: `${100 * held.box.x}%`, top: `${100 * held.box.y}%`, width: `${100 * held.box.width}%`, height: `${100 * held.box.height}%`,
    });
  }

  up(event) {
    const held = this.held;
    this.held = null;
    if (!held) return;
    if (event.type === "pointerup" && held.drawing && held.box.width >= LEAST && held.box.height >= LEAST) {
      this.choose(this.add([held.box]));
    } else if (event.type === "pointerup" && held.box && !held.drawing) this.change(held.at, held.box);
    else this.draw();
  }
}

function alike(one, other) { return one.label === other.label && (one.instance ?? "") === (other.instance ?? ""); }

function spanned([x0, y0], [x1, y1]) {
  const [x, y] = [exact(Math.min(x0, x1)), exact(Math.min(y0, y1))];
  return { x, y, width: exact(Math.max(x0, x1) - x), height: exact(Math.max(y0, y1) - y) };
}

function moved(box, dx, dy) {
  return { x: exact(clamp(box.x + dx, 0, 1 - box.width)), y: exact(clamp(box.y + dy, 0, 1 - box.height)) };
}

/* With one corner moved; the opposite one stays. */
function resized(box, corners) {
  const [[name, [dx, dy]]] = Object.entries(corners);
  let [left, top, right, bottom] = [box.x, box.y, box.x + box.width, box.y + box.height];
  if (name.includes("w")) left = clamp(left + dx, 0, right - LEAST); else right = clamp(right + dx, left + LEAST, 1);
  if (name.includes("n")) top = clamp(top + dy, 0, bottom - LEAST); else bottom = clamp(bottom + dy, top + LEAST, 1);
  return spanned([left, top], [right, bottom]);
}
