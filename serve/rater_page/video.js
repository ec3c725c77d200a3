// A video in a <video>: the whole file, or clips that the server encodes on request. Times are always
// those of the whole file, also while a clip of it plays.

// `key`, `whole`, `begin`, `end` and `every` (seconds between the beginnings of clips) come from the server.
export function playing(video, { key, whole, begin, end, every }) {
  let offset = 0; // The time in the video at which the loaded clip begins.
  let wanted = null; // The time to go to once the loading clip is ready.
  let stop = null; // The time at which to pause.
  let looped = null; // The span [start, end] that is looped.
  let ahead = -1; // The number of the clip that was requested in advance.

  const now = () => wanted ?? offset + video.currentTime;
  const go = () => video.play().catch(() => {});

  function seek(time, play = !video.paused) {
    stop = null;
    time = Math.max(begin, Math.min(time, Math.max(begin, end - 0.05)));
    const loaded = video.src && wanted === null && time >= offset && time < offset + (video.duration || 0);
    if (whole || loaded) {
      video.currentTime = time - offset;
      if (play) go();
      return;
    }
    const number = Math.floor(time / every);
    const again = wanted !== null && offset === number * every;
    wanted = time;
    if (again) return; // This clip is loading already.
    offset = number * every;
    video.src = `/video/${key}/${number}`;
    video.addEventListener("loadedmetadata", () => {
      video.currentTime = wanted - offset;
      wanted = null;
      if (play) go();
    }, { once: true });
  }

  function play(start, until) { // Plays from `start` to `until`.
    seek(start, true);
    stop = until;
  }

  function prepare() { // Requests the next clip while this one plays.
    const following = Math.round((offset + video.duration) / every);
    if (whole || video.paused || following === ahead || video.currentTime < video.duration / 2) return;
    ahead = following;
    if (following * every < end) fetch(`/video/${key}/${following}`, { method: "HEAD" }).catch(() => {});
  }

  function follow() {
    const time = now();
    prepare();
    if (looped !== null && !video.paused) {
      if (time >= looped[1] || time < looped[0] - 0.5) seek(looped[0], true);
    } else if (stop !== null && time >= stop) {
      stop = null;
      video.pause();
    } else if (time >= end && !video.paused) video.pause();
  }

  if (whole && !video.src) video.src = `/video/${key}`;
  for (const kind of ["timeupdate", "seeked"]) video.addEventListener(kind, follow);
  video.addEventListener("ended", () => {
    if (looped !== null && now() >= looped[1] - 0.2) seek(looped[0], true);
    else if (!whole && now() < end - 0.5) seek(now() + 0.01, true);
  });
  return { now, seek, play, loop: (span) => { looped = span; } };
}

export function clock(seconds) { // Formats a time as 1:02:03.4.
  const tenths = Math.round(seconds * 10);
  const hours = Math.floor(tenths / 36000), minutes = Math.floor(tenths / 600) % 60;
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
