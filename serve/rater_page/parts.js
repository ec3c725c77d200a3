// Parts of the video that a rater marks on the timeline and moves by single frames. The field's textarea
// holds them, one START-END per line; this script draws them.

import { clock } from "./video.js";
import { circle, end, video, now, frame, place, play, seek, width } from "./player.js";

const MERGED = 5; // Parts less than 5 seconds apart count as one, here and on the server.
const box = document.querySelector(".parts");
const area = box?.querySelector("textarea");
let parts = [];
let chosen = -1;
let from = null; // The beginning of a part without an end.

export const marking = box !== null && video !== null;

const round = (time) => Math.round(time * 1000) / 1000;
const button = (text, label, act) => {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.setAttribute("aria-label", label);
  element.addEventListener("click", act);
  return element;
};

export function read() { // Reads the parts from the textarea.
  if (!marking) return;
  parts = area.value.split("\n").filter((line) => line.includes("-")).map((line) => line.split("-").map(Number));
  chosen = Math.min(chosen, parts.length - 1);
  draw();
}

function change() {
  parts.sort((a, b) => a[0] - b[0]);
  area.value = parts.map(([a, b]) => `${a.toFixed(3)}-${b.toFixed(3)}`).join("\n");
  area.form.dispatchEvent(new Event("input"));
  draw();
}

function choose(index, show = true) {
  chosen = index;
  if (parts[chosen]) {
    circle([...parts[chosen]]);
    if (show) seek(parts[chosen][0], false);
  }
  draw();
}

export function nudge(edge, frames) {
  const part = parts[chosen];
  if (!part) return;
  const time = round(Math.max(0, Math.min(part[edge] + frames * frame, end)));
  if (edge === 0 ? time >= part[1] : time <= part[0]) return;
  part[edge] = time;
  video.pause();
  seek(time, false);
  circle([...part]);
  change();
}

export function begin() {
  from = round(now());
  draw();
}

export function finish() {
  const until = round(now());
  if (from === null || until <= from) {
    document.getElementById("state").textContent = "Begin a part with I, then end it with O at a later time.";
    return;
  }
  const part = [from, until];
  parts.push(part);
  from = null;
  change();
  choose(parts.indexOf(part), false);
}

export function remove() {
  if (!parts[chosen]) return;
  parts.splice(chosen, 1);
  chosen = Math.min(chosen, parts.length - 1);
  change();
}

export const nextPart = () => parts.length && choose((chosen + 1) % parts.length);
export const playPart = () => parts[chosen] && play(...parts[chosen]);

function merged() { // The number of merged parts and their seconds, as the server counts.
  const spans = [];
  for (const [start, until] of parts) {
    const last = spans.at(-1);
    if (last && start - last[1] < MERGED) last[1] = Math.max(last[1], until);
    else spans.push([start, until]);
  }
  return [spans.length, spans.reduce((sum, [a, b]) => sum + b - a, 0)];
}

function row([start, until], index) {
  const item = document.createElement("li");
  item.classList.toggle("on", index === chosen);
  const nudging = (edge, step, text, label) => button(text, label, () => { choose(index, false); nudge(edge, step); });
  const time = button(`${clock(start)} – ${clock(until)}`, `Part ${index + 1}, ${clock(start)} to ${clock(until)}: choose and play`, () => { choose(index); playPart(); });
  time.className = "part";
  item.append(
    nudging(0, -1, "−", "Beginning one frame back"), nudging(0, 1, "+", "Beginning one frame forward"), time,
    nudging(1, -1, "−", "End one frame back"), nudging(1, 1, "+", "End one frame forward"),
    button("×", `Remove part ${index + 1}`, () => { chosen = index; remove(); }),
  );
  return item;
}

function draw() {
  const [count, seconds] = merged();
  let sum = parts.length ? `${seconds.toFixed(1)} s in total` : "No part marked yet";
  if (count < parts.length) sum += `; parts less than ${MERGED} s apart count as one: ${count} in total`;
  if (from !== null) sum += `. A part began at ${clock(from)}`;
  box.querySelector(".sum").textContent = sum;
  box.querySelector("ol").replaceChildren(...parts.map(row));
  const timeline = document.getElementById("timeline");
  timeline.querySelectorAll("s").forEach((bar) => bar.remove());
  for (const [index, [start, until]] of parts.entries()) {
    const bar = document.createElement("s");
    bar.style.left = place(start);
    bar.style.width = width(until - start);
    bar.classList.toggle("on", index === chosen);
    timeline.append(bar);
  }
}

if (marking) {
  box.querySelector(".raw").hidden = true;
  const bar = document.createElement("p");
  bar.className = "bar";
  bar.append(button("Begin here", "Begin a part here", begin), button("End here", "End the part here", finish));
  const sum = document.createElement("p");
  sum.className = "sum hint";
  sum.setAttribute("role", "status");
  box.append(bar, sum, document.createElement("ol"));
  read();
}
document.documentElement.classList.toggle("marking", marking);
