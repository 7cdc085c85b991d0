// An MCP server for tests that sends the pages of its argument, without a library that would correct it:
// `node odd-mcp-server.fixture.mjs '{"pages": {"": {"tools": […], "nextCursor": "b"}, "b": {…}}}'`.
// A page of the cursor "*" answers all cursors that have no page of their own. A call of a tool is answered with its
// name and its arguments as they came; one of the tool "nulls" has null for each member that may be left out.
import { createInterface } from "node:readline";

const { pages } = JSON.parse(process.argv[2]);
const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

function answer({ id, method, params = {} }) {
  switch (method) {
    case "initialize": {
      const { protocolVersion } = params;
      const serverInfo = { name: "odd", version: "1" };
      return send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
    }
    case "tools/list": {
      const page = pages[params.cursor ?? "first"] ?? pages["*"];
      if (page === undefined)
        return send({ id, error: { code: -32602, message: "Invalid cursor" } });
      return send({ id, result: page });
    }
    case "tools/call": {
      const text = `${params.name} ${JSON.stringify(params.arguments)}`;
      if (params.name !== "nulls")
        return send({ id, result: { content: [{ type: "text", text }] } });
      const absent = { structuredContent: null, isError: null, _meta: null };
      const part = { type: "text", text, annotations: null, _meta: null };
      return send({ id, result: { content: [part], ...absent } });
    }
    default:
      if (id !== undefined) send({ id, error: { code: -32601, message: "Method not found" } });
  }
}

createInterface({ input: process.stdin }).on("line", (line) => answer(JSON.parse(line)));
