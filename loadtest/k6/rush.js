// Sends the requests of the file TARGETS, all at once, and prints each result as a line of JSON.
//
// loadtest/run starts it and judges the results. A line has the members of `vegeta encode -to json`.

import { SharedArray } from 'k6/data';
import { b64encode } from 'k6/encoding';
import exec from 'k6/execution';
import http from 'k6/http';

const targets = new SharedArray('targets', () => open(__ENV.TARGETS).trim().split('\n').map((line) => line.slice('GET '.length)));

export const options = {
  scenarios: {
    rush: { executor: 'per-vu-iterations', vus: Number(__ENV.BUYERS), iterations: 1, maxDuration: '10m' },
  },
};

export default function () {
  const url = targets[exec.vu.idInTest - 1];
  const start = Date.now();
  const answer = http.get(url, { timeout: __ENV.TIMEOUT });
  const headers = Object.entries(answer.headers).map(([name, value]) => [name, [value]]);
  console.log(JSON.stringify({
    url,
    code: answer.status,
    timestamp: new Date(start).toISOString(),
    latency: (Date.now() - start) * 1e6,
    error: answer.error,
    body: b64encode(answer.body || ''),
    headers: Object.fromEntries(headers),
  }));
}
