// Keys, jumps to the evidence, the loop, the transcript that follows, drafts. The page works
// without it: the form is an ordinary one.
"use strict";

const form = document.getElementById("form");
const film = document.getElementById("film");
const state = document.getElementById("state");
const spans = [...document.querySelectorAll(".span")];
const lines = [...document.querySelectorAll("#lines li")];
const STEP = 30; // seconds between the beginnings of stretches, as the server cuts them
const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3];

// --- time: the film's own, also where a stretch of it is played ---
const whole = film !== null && film.dataset.whole === "1";
const duration = film === null ? 0 : Number(film.dataset.duration);
let offset = 0; // where the stretch that is loaded begins in the film
let current = -1; // the evidence that was jumped to last
let looping = false;

const now = () => offset + film.currentTime;

function seek(time, play = !film.paused) {
  if (film === null) return;
  time = Math.max(0, Math.min(time, Math.max(0, duration - 0.05)));
  if (whole || (film.src && time >= offset && time < offset + (film.duration || 0))) {
    film.currentTime = time - offset;
    if (play) film.play().catch(() => {});
    return;
  }
  const number = Math.floor(time / STEP);
  offset = number * STEP;
  film.src = `/film/${film.dataset.key}/${number}`;
  film.addEventListener("loadedmetadata", () => {
    film.currentTime = time - offset;
    if (play) film.play().catch(() => {});
  }, { once: true });
}

function jump(index, play = true) {
  if (film === null || !spans.length) return;
  current = (index + spans.length) % spans.length;
  spans.forEach((span, i) => span.classList.toggle("on", i === current));
  seek(Number(spans[current].dataset.start), play);
}

function loop(on = !looping) {
  looping = on;
  document.getElementById("loop").setAttribute("aria-pressed", String(on));
  if (on && current < 0) jump(0);
}

function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  const hours = Math.floor(tenths / 36000), minutes = Math.floor(tenths / 600) % 60;
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

function speed(step) {
  const place = SPEEDS.indexOf(film.playbackRate) + step;
  film.playbackRate = film.defaultPlaybackRate = SPEEDS[Math.max(0, Math.min(place, SPEEDS.length - 1))];
  document.getElementById("speed").textContent = `${film.playbackRate}x`;
}

if (film !== null) {
  const timeline = document.getElementById("timeline");
  for (const span of spans) {
    const bar = document.createElement("i");
    bar.style.left = `${(100 * span.dataset.start) / duration}%`;
    bar.style.width = `${(100 * (span.dataset.end - span.dataset.start)) / duration}%`;
    timeline.append(bar);
  }
  const hand = document.createElement("b");
  timeline.append(hand);
  timeline.addEventListener("click", (event) => {
    const box = timeline.getBoundingClientRect();
    seek((duration * (event.clientX - box.left)) / box.width);
  });
  const follow = () => {
    const time = now();
    if (looping && current >= 0 && !film.paused) {
      const { start, end } = spans[current].dataset;
      if (time >= Number(end) || time < Number(start) - 0.5) seek(Number(start), true);
    }
    hand.style.left = `${(100 * time) / duration}%`;
    document.getElementById("time").textContent = clock(time);
    for (const line of lines) {
      const on = time >= Number(line.dataset.start) && time < Number(line.dataset.end);
      if (on && !line.classList.contains("on")) {
        line.parentElement.scrollTop = line.offsetTop - line.parentElement.offsetTop - 40;
      }
      line.classList.toggle("on", on);
    }
  };
  film.addEventListener("timeupdate", follow);
  film.addEventListener("seeked", follow);
  film.addEventListener("ended", () => {
    if (looping && current >= 0 && now() >= Number(spans[current].dataset.end) - 0.2) jump(current);
    else if (!whole && now() < duration - 0.5) seek(now() + 0.01, true);
  });
  film.addEventListener("error", () => { state.textContent = "This part of the film cannot be played."; });
  spans.forEach((span, i) => span.addEventListener("click", () => jump(i)));
  for (const line of lines) {
    line.querySelector("button").addEventListener("click", () => seek(Number(line.dataset.start), true));
  }
  document.getElementById("loop").addEventListener("click", () => loop());
  jump(0, false);
  if (!spans.length) seek(0, false);
}

// --- the form: one line is marked, digits answer it ---
const fields = [...form.querySelectorAll("fieldset")];
const unanswered = (field) => !field.querySelector(":checked");
let marked = 0;

function mark(place, show = true) {
  marked = Math.max(0, Math.min(place, fields.length - 1));
  fields.forEach((field, i) => field.classList.toggle("now-asked", i === marked));
  if (show && fields[marked]) fields[marked].scrollIntoView({ block: "nearest" });
}

function answer(digit) {
  const choice = fields[marked]?.querySelectorAll("input")[digit - 1];
  if (!choice) return;
  choice.checked = choice.type === "radio" || !choice.checked;
  form.dispatchEvent(new Event("input"));
  if (choice.type !== "radio") return;
  const next = fields.findIndex((field, i) => i > marked && unanswered(field));
  mark(next < 0 ? marked : next);
}

mark(Math.max(0, fields.findIndex(unanswered)), false);
fields.forEach((field, i) => field.addEventListener("focusin", () => mark(i, false)));

const KEYS = {
  " ": () => (film.paused ? film.play().catch(() => {}) : film.pause()),
  e: () => jump(current + 1), E: () => jump(current - 1),
  l: () => loop(),
  ArrowLeft: () => seek(now() - 5), ArrowRight: () => seek(now() + 5),
  ",": () => { film.pause(); seek(now() - 1 / film.dataset.fps, false); },
  ".": () => { film.pause(); seek(now() + 1 / film.dataset.fps, false); },
  "[": () => speed(-1), "]": () => speed(1),
};

document.addEventListener("keydown", (event) => {
  const writing = event.target.tagName === "TEXTAREA";
  if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "Enter")) return;
  if (event.key === "Escape" && writing) event.target.blur();
  const button = event.target.closest?.("button, summary") && [" ", "Enter"].includes(event.key);
  const ticking = event.key === " " && event.target.matches?.("input:not(:checked), [type=checkbox]");
  if (button || ticking || (writing && !(event.key === "Enter" && event.ctrlKey))) return;
  if (event.key === "Enter") send();
  else if (/^[1-9]$/.test(event.key)) answer(Number(event.key));
  else if (event.key === "ArrowUp") mark(marked - 1);
  else if (event.key === "ArrowDown") mark(marked + 1);
  else if (film !== null && KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

// --- drafts: on this machine at once, on the server a moment later ---
const local = `draft ${form.elements.question.value}`;
const filled = () => new URLSearchParams(new FormData(form));
let waiting = 0, sending = false;

function restore(text) {
  const kept = new URLSearchParams(text);
  for (const input of form.querySelectorAll("input[type=radio], input[type=checkbox]")) {
    input.checked = kept.getAll(input.name).includes(input.value);
  }
  for (const area of form.querySelectorAll("textarea")) area.value = kept.get(area.name) ?? "";
}

async function save() {
  waiting = 0;
  if (sending) return;
  const body = filled();
  try {
    const reply = await fetch("/draft", { method: "POST", body });
    if (reply.ok) {
      if (String(filled()) === String(body)) localStorage.removeItem(local);
      state.textContent = "Draft saved";
    } else state.textContent = await reply.text();
  } catch {
    state.textContent = "No connection: your answers are kept in this browser; trying again";
    waiting = waiting || setTimeout(save, 3000);
  }
}

form.addEventListener("input", () => {
  const kept = filled();
  kept.delete("csrf");
  localStorage.setItem(local, String(kept));
  clearTimeout(waiting);
  waiting = setTimeout(save, 500);
});

const kept = localStorage.getItem(local); // what never reached the server
if (kept) {
  restore(kept);
  mark(Math.max(0, fields.findIndex(unanswered)), false);
  save();
}

async function send() {
  if (sending) return;
  sending = true;
  try {
    const reply = await fetch("/vote", { method: "POST", body: filled(), headers: { accept: "application/json" } });
    if (reply.ok || reply.status === 409) {
      localStorage.removeItem(local);
      location.assign("/task");
      return;
    }
    if (reply.status === 422) {
      const list = document.getElementById("faults");
      list.replaceChildren(...(await reply.json()).faults.map((fault) => {
        const item = document.createElement("li");
        item.textContent = fault;
        return item;
      }));
      mark(Math.max(0, fields.findIndex(unanswered)));
    } else state.textContent = await reply.text();
  } catch {
    state.textContent = "No connection: not sent; your answers are kept. Send again";
  }
  sending = false;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
