// Runs Python through an MCP server, as the TypeScript SDK's client:
//
//     node client.mjs SCRIPT COMMAND ARGUMENTS...
//     node client.mjs SCRIPT URL [TOKEN]
//
// Prints the tools that the server lists, the structured result and the messages of progress, as JSON.
// It is copied beside the node_modules that hold the SDK.
import { readFile } from "node:fs/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [script, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "client.mjs", version: "1.0.0" });
const http = /^https?:/.test(command);
const headers = args.length ? { Authorization: `Bearer ${args[0]}` } : {};
const transport = http
  ? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers } })
  : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
await client.connect(transport);
const { tools } = await client.listTools();
const progress = [];
const result = await client.callTool(
  { name: "run_python", arguments: { code: await readFile(script, "utf8"), timeout: 60 } },
  undefined,
  { onprogress: ({ message }) => progress.push(message) },
);
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), result, progress }));
if (http) await transport.terminateSession();
await client.close();
