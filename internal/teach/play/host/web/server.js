// server.js sends requests to the shop. Each call returns the answer, or throws an error of one line.

async function call(method, path, body) {
  const request = { method, headers: { Accept: "application/json" } };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Error("the shop does not answer; is it still running?");
  }
  if (answer.status === 204) return null;
  const said = await answer.json().catch(() => null);
  if (!answer.ok || said === null) {
    const err = new Error(said?.detail ?? `the shop answered ${answer.status}`);
    err.gone = answer.status === 404 || answer.status === 410;
    throw err;
  }
  return said;
}

const path = (id, rest) => `/play/games/${encodeURIComponent(id)}${rest}`;

export const levels = () => call("GET", "/play/levels").then((a) => a.levels);
export const strategies = () => call("GET", "/strategies");
export const begin = (config) => call("POST", "/play/games", config);
export const look = (id) => call("GET", path(id, ""));
export const leave = (id) => call("DELETE", path(id, ""));
export const move = (id, token) => call("POST", path(id, "/moves"), { token });
export const undo = (id) => call("POST", path(id, "/undo"));
export const restart = (id) => call("POST", path(id, "/restart"));
export const hint = (id, n) => call("POST", path(id, "/hint"), { n });
export const prove = (id) => call("POST", path(id, "/prove"));

// watch keeps the game alive until the returned function is called. When the stream breaks, it calls
// lost, and the browser opens the stream again. If the shop refuses the stream, watch asks whether the
// game still exists.
export function watch(id, { progress, ended, lost, back }) {
  const stream = new EventSource(path(id, "/events"));
  stream.addEventListener("progress", (e) => progress(JSON.parse(e.data)));
  stream.addEventListener("ended", (e) => {
    stream.close();
    ended(JSON.parse(e.data).why);
  });
  stream.addEventListener("open", back);
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) look(id).then(() => lost("too many pages show this game; close another one"), (err) => (err.gone ? ended(err.message) : lost(err.message)));
    else lost("the shop does not answer; trying again");
  });
  return () => stream.close();
}
