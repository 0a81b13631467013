// The leader's token: one for all pages of this shop in this browser. Each tab stores it, and a new
// tab asks the open ones. So the token is gone when the last tab is closed.

const key = 'oversell-token';
const tabs = new BroadcastChannel(key);
const listeners = [];
let kept = ''; // if the browser stores nothing

export function token() {
  try { return sessionStorage.getItem(key) ?? kept; } catch { return kept; }
}

function keep(text) {
  kept = text;
  try { sessionStorage.setItem(key, text); } catch { /* kept until the page ends */ }
  for (const told of listeners) told(text);
}

// useToken sets the token in all tabs.
export function useToken(text) {
  if (text === token()) return;
  keep(text);
  tabs.postMessage({ token: text });
}

// onToken registers a function that is called with each new token.
export function onToken(told) { listeners.push(told); }

tabs.onmessage = ({ data }) => {
  if (data.token !== undefined) keep(data.token);
  else if (token()) tabs.postMessage({ token: token() });
};
if (!token()) tabs.postMessage({});
