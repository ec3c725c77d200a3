// Keys, form, drafts and time. The page also works without this script, as an ordinary form.

import { video, frame, loop, next, now, seek, speed } from "./player.js";
import * as parts from "./parts.js";

const form = document.getElementById("form");
const state = document.getElementById("state");

// --- The form: one field is marked, and digits answer it. ---
const fields = [...form.querySelectorAll(".field")];
const picked = (field) => field.matches("fieldset:not(.parts)");
const unanswered = (field) => (field.matches(".parts") ? !field.querySelector("textarea").value : picked(field) && !field.querySelector(":checked"));
let marked = 0;

function mark(place, show = true) {
  marked = Math.max(0, Math.min(place, fields.length - 1));
  fields.forEach((field, i) => field.classList.toggle("now-asked", i === marked));
  const field = fields[marked];
  if (!show || !field) return;
  field.scrollIntoView({ block: "nearest" });
  if (field.matches(".written")) field.querySelector("textarea").focus();
}

function answer(digit) {
  const choice = fields[marked]?.querySelectorAll("input")[digit - 1];
  if (!choice) return;
  choice.checked = choice.type === "radio" || !choice.checked;
  form.dispatchEvent(new Event("input"));
  if (choice.type !== "radio") return;
  const following = fields.findIndex((field, i) => i > marked && unanswered(field));
  if (following >= 0) mark(following);
}

mark(Math.max(0, fields.findIndex(unanswered)), false);
fields.forEach((field, i) => field.addEventListener("focusin", () => mark(i, false)));

const KEYS = {
  " ": () => (video.paused ? video.play().catch(() => {}) : video.pause()),
  e: () => next(1), E: () => next(-1), l: () => loop(),
  ArrowLeft: () => seek(now() - 5), ArrowRight: () => seek(now() + 5),
  ",": () => { video.pause(); seek(now() - frame, false); },
  ".": () => { video.pause(); seek(now() + frame, false); },
  "[": () => speed(-1), "]": () => speed(1),
};
const PARTS = {
  i: parts.begin, o: parts.finish, n: parts.nextPart, p: parts.playPart,
  a: () => parts.nudge(0, -1), s: () => parts.nudge(0, 1),
  d: () => parts.nudge(1, -1), f: () => parts.nudge(1, 1),
  Delete: parts.remove, Backspace: parts.remove,
};

document.addEventListener("keydown", (event) => {
  const writing = event.target.tagName === "TEXTAREA";
  if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "Enter")) return;
  if (event.key === "Escape" && writing) event.target.blur();
  const button = event.target.closest?.("button, summary") && [" ", "Enter"].includes(event.key);
  const ticking = event.key === " " && event.target.matches?.("input:not(:checked), [type=checkbox]");
  if (button || ticking || (writing && !(event.key === "Enter" && event.ctrlKey))) return;
  const act = (parts.marking && PARTS[event.key]) || (video !== null && KEYS[event.key]);
  if (event.key === "Enter") send();
  else if (/^[1-9]$/.test(event.key)) answer(Number(event.key));
  else if (event.key === "ArrowUp") mark(marked - 1);
  else if (event.key === "ArrowDown") mark(marked + 1);
  else if (act) act();
  else return;
  event.preventDefault();
});

// --- Active seconds: the page is visible, and the rater moves something or the video plays. ---
const IDLE = 30; // seconds without movement after which a rater counts as idle
let active = 0, last = Date.now(), moved = Date.now();
for (const kind of ["keydown", "pointermove", "pointerdown", "wheel", "touchstart"]) {
  addEventListener(kind, () => { moved = Date.now(); }, { passive: true });
}
setInterval(() => {
  const time = Date.now();
  const playing = video !== null && !video.paused;
  if (!document.hidden && (playing || time - moved < IDLE * 1000)) active += Math.min(2, (time - last) / 1000);
  last = time;
}, 1000);

// --- The time limit of a timed round. ---
const timer = document.getElementById("clock");
if (timer !== null) {
  const until = Date.now() + 1000 * Number(timer.dataset.left);
  const tick = () => {
    const left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
    timer.textContent = left ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left` : "Time is over: give your best guess.";
    if (left) return;
    clearInterval(ticking);
    video?.pause();
    document.getElementById("video-part")?.remove();
  };
  const ticking = setInterval(tick, 500);
  tick();
}

// --- Drafts: stored in the browser at once, and on the server a moment later. ---
const local = `draft ${form.elements.item.value} ${form.elements.step.value}`;
const filled = () => {
  form.elements.active.value = active.toFixed(0);
  return new URLSearchParams(new FormData(form));
};
const answers = () => {
  const kept = filled();
  kept.delete("csrf");
  kept.delete("active");
  return String(kept);
};
let waiting = 0, sending = false;

function restore(text) {
  const kept = new URLSearchParams(text);
  for (const input of form.querySelectorAll("input[type=radio], input[type=checkbox]")) {
    input.checked = kept.getAll(input.name).includes(input.value);
  }
  for (const area of form.querySelectorAll("textarea")) area.value = kept.get(area.name) ?? "";
  parts.read();
}

async function save() {
  waiting = 0;
  if (sending) return;
  const before = answers();
  try {
    const reply = await fetch("/draft", { method: "POST", body: filled() });
    if (reply.status >= 500) throw new Error("unavailable");
    if (reply.ok) {
      if (answers() === before) localStorage.removeItem(local);
      state.textContent = "Draft saved";
    } else state.textContent = await reply.text();
  } catch {
    state.textContent = "No connection: your answers are kept in this browser; retrying";
    waiting = waiting || setTimeout(save, 3000);
  }
}

form.addEventListener("input", () => {
  localStorage.setItem(local, answers());
  clearTimeout(waiting);
  waiting = setTimeout(save, 500);
});

for (const take of document.querySelectorAll(".take")) {
  take.addEventListener("click", () => {
    const area = form.elements[take.dataset.field];
    area.value = take.dataset.value;
    form.dispatchEvent(new Event("input"));
    area.focus();
  });
}

const kept = localStorage.getItem(local); // A draft that did not reach the server.
if (kept) {
  restore(kept);
  mark(Math.max(0, fields.findIndex(unanswered)), false);
  save();
}

async function send() {
  if (sending) return;
  sending = true;
  clearTimeout(waiting);
  try {
    const reply = await fetch("/vote", { method: "POST", body: filled(), headers: { accept: "application/json" } });
    if (reply.ok || reply.status === 409) {
      localStorage.removeItem(local);
      location.assign(reply.ok ? (await reply.json()).next : "/task");
      return;
    }
    if (reply.status === 422) {
      const list = document.getElementById("faults");
      list.replaceChildren(...(await reply.json()).faults.map((fault) => {
        const item = document.createElement("li");
        item.textContent = fault;
        return item;
      }));
      list.scrollIntoView({ block: "nearest" });
      mark(Math.max(0, fields.findIndex(unanswered)), false);
    } else state.textContent = await reply.text();
  } catch {
    state.textContent = "No connection: not sent. Your answers are kept; send again";
  }
  sending = false;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
