// Makes the calls in a file with Node: `fetch`, or the module http with connections that are kept.
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

const [kind, path] = process.argv.slice(2);
const { URL: base, KEY } = process.env;
const headers = { Authorization: `Bearer ${KEY}` };
const module = base.startsWith("https") ? https : http;
const agent = new module.Agent({ keepAlive: true, maxSockets: 1 });

async function fetched(target, body) {
  const response = await fetch(base + target, { method: "POST", headers, body });
  return [response.status, await response.text()];
}

function requested(target, body) {
  return new Promise((resolve, reject) => {
    const request = module.request(base + target, { method: "POST", headers, agent }, (response) => {
      let text = "";
      response.on("data", (part) => (text += part));
      response.on("end", () => resolve([response.statusCode, text]));
    });
    request.on("error", reject);
    request.write(body.slice(0, 5)); // in chunks, because there is no length
    request.end(body.slice(5));
  });
}

for (const line of readFileSync(path, "utf-8").trimEnd().split("\n")) {
  const [target, body] = line.split("\t");
  console.log((await (kind === "fetch" ? fetched : requested)(target, body)).join("\t"));
}
agent.destroy();
