// Runs Python through an MCP server, as the TypeScript SDK's client:
//
//     node client.mjs SCRIPT COMMAND ARGUMENTS...
//
// Prints the tools that the server lists and the structured result, as JSON.
// It is copied beside the node_modules that hold the SDK.
import { readFile } from "node:fs/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [script, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "client.mjs", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
const { tools } = await client.listTools();
const result = await client.callTool({
  name: "run_python",
  arguments: { code: await readFile(script, "utf8"), timeout: 60 },
});
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), result }));
await client.close();
