/* A clip's time as a bar: where the player is, and the moments that were marked. A mark is moved by mouse, finger or
   keys, from picture to picture, and the player shows the one that it is moved to. */

import { element } from "./marks.js";
import { clockText } from "./player.js";

/* `marks` reads and keeps the moments, {time, kind} in order; `kinds` are in the order of their colours. */
export function timeline(form, player, marks, kinds) {
  const bar = element("div", { className: "timeline" });
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", form.querySelector("[data-moments]").getAttribute("aria-label"));
  const head = element("div", { className: "head" });
  const { times, table } = player;
  const share = (time) => 100 * Math.min(Math.max((time - table.start) / (table.end - table.start), 0), 1);
  let held = null;

  const draw = (focus = null) => {
    const drawn = marks.read().map((one, at) => {
      const mark = element("button", { type: "button", className: "mark", data: { moment: at } });
      mark.setAttribute("aria-label", `${one.kind} ${clockText(one.time)}`);
      mark.title = mark.getAttribute("aria-label");
      mark.style.left = `${share(one.time)}%`;
      mark.style.setProperty("--class", `var(--s${kinds.indexOf(one.kind) % 8})`);
      return mark;
    });
    bar.replaceChildren(head, ...drawn);
    if (focus !== null) drawn[focus]?.focus({ preventScroll: true });
  };

  /* Gives a mark another picture's time; returns where it is in the order then. */
  const move = (at, frame) => {
    const some = marks.read();
    const moved = { ...some[at], time: times.time(Math.min(Math.max(frame, player.clip[0]), player.clip[1])) };
    some[at] = moved;
    some.sort((a, b) => a.time - b.time);
    marks.keep(some);
    return some.indexOf(moved);
  };

  const at = (event) => {
    const { left, width } = bar.getBoundingClientRect();
    return times.at(table.start + (event.clientX - left) / width * (table.end - table.start));
  };

  bar.addEventListener("keydown", (event) => {
    const mark = event.target.dataset.moment;
    if (mark === undefined || form.dataset.open !== "yes") return;
    const [one, way] = [marks.read()[mark], { ArrowLeft: -1, ArrowRight: 1 }[event.key]];
    if (way) {
      const frame = event.shiftKey ? times.at(one.time + way) : times.at(one.time) + way;
      const now = move(Number(mark), frame);
      player.seek(marks.read()[now].time);
      draw(now);
    } else if (event.key === "Delete") {
      marks.keep(marks.read().filter((_, other) => other !== Number(mark)));
    } else return;
    event.preventDefault();
  });
  bar.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    bar.setPointerCapture(event.pointerId);
    const mark = event.target.dataset.moment;
    held = { mark: mark === undefined || form.dataset.open !== "yes" ? null : Number(mark), from: event.clientX, frame: null };
    if (mark === undefined) player.seek(times.time(at(event)));
    else { player.seek(marks.read()[mark].time); event.target.focus(); }
  });
  bar.addEventListener("pointermove", (event) => {
    if (!held || (held.frame === null && Math.abs(event.clientX - held.from) < 4)) return;
    held.frame = Math.min(Math.max(at(event), player.clip[0]), player.clip[1]);
    if (held.mark !== null) bar.querySelector(`[data-moment="${held.mark}"]`).style.left = `${share(times.time(held.frame))}%`;
    player.seek(times.time(held.frame));
  });
  bar.addEventListener("pointerup", () => {
    const { mark, frame } = held ?? { mark: null, frame: null };
    held = null;
    if (mark !== null && frame !== null) draw(move(mark, frame));
  });
  bar.addEventListener("pointercancel", () => { held = null; draw(); });
  player.root.addEventListener("frame", ({ detail }) => { head.style.left = `${share(detail.time)}%`; });
  head.style.left = `${share(times.time(player.frame))}%`;
  player.part("stage").after(bar);
  draw();
  return draw;
}
