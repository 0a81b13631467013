// The leader's token: one for all pages of this shop in this browser. Each tab keeps it, and a
// new one asks those that are open, so it is gone when the last of them is closed.

const key = 'oversell-token';
const tabs = new BroadcastChannel(key);
const listeners = [];
let kept = ''; // where the browser stores nothing

export function token() {
  try { return sessionStorage.getItem(key) ?? kept; } catch { return kept; }
}

function keep(text) {
  kept = text;
  try { sessionStorage.setItem(key, text); } catch { /* kept until the page ends */ }
  for (const told of listeners) told(text);
}

// useToken is the token from now on, in all tabs.
export function useToken(text) {
  if (text === token()) return;
  keep(text);
  tabs.postMessage({ token: text });
}

// onToken has a function called with each new token.
export function onToken(told) { listeners.push(told); }

tabs.onmessage = ({ data }) => {
  if (data.token !== undefined) keep(data.token);
  else if (token()) tabs.postMessage({ token: token() });
};
if (!token()) tabs.postMessage({});
