// Records what an MCP server answers to tools/list, as a file of this folder:
//
//	node record.mjs NAME "DESCRIPTION" COMMAND [ARG…] > NAME.json
//
// The four recorded files come from the servers that ../npm pins. The client
// declares every capability, because server-everything lists some of its tools
// only to a client that has them.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [name, description, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();

createInterface({ input: child.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === "roots/list") {
    send({ id: message.id, result: { roots: [] } });
  } else if ("id" in message && waiting.has(message.id)) {
    waiting.get(message.id)(message);
  }
});

function send(message) {
  child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

let lastID = 0;
async function request(method, params) {
  const id = ++lastID;
  const answer = new Promise((resolve) => waiting.set(id, resolve));
  send({ id, method, params });
  const { result, error } = await answer;
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}

await request("initialize", {
  protocolVersion: "2025-11-25",
  clientInfo: { name: "record", version: "1" },
  capabilities: {
      roots: { listChanged: true },
      sampling: { tools: {}, context: {} },
      elicitation: { form: {}, url: {} },
      tasks: { requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
    },
});
send({ method: "notifications/initialized" });
// server-everything adds the tools that need a capability after this.
await new Promise((resolve) => setTimeout(resolve, 1000));

const tools = [];
let cursor;
do {
  const page = await request("tools/list", cursor ? { cursor } : {});
  tools.push(...page.tools);
  cursor = page.nextCursor;
} while (cursor);
console.log(JSON.stringify({ server: name, description, tools }, null, 2));
child.kill();
process.exit(0);
