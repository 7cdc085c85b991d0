// An MCP server for tests, with the official library: `node mcp-test-server.fixture.mjs [tools…]`.
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const text = (value) => ({ content: [{ type: "text", text: value }] });
const none = fromJsonSchema({ type: "object", properties: {} });

/** What a server has by the name of `count`: a state of its own. */
export function createServer(only = []) {
  let count = 0;
  const server = new McpServer({ name: "test", version: "1.0.0" });
  const tools = {
    count: () => text(String((count += 1))),
    add: ({ a, b }) => text(String(a + b)),
    fail: () => ({ ...text("Error: there is no such page"), isError: true }),
    picture: () => ({ content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] }),
    page: () => ({
      content: [
        { type: "text", text: "one" },
        { type: "resource", resource: { uri: "file:///two", text: "two" } },
        { type: "resource_link", uri: "file:///three", name: "three" },
      ],
    }),
    data: () => ({ content: [], structuredContent: { a: [1] } }),
    big: () => text(`${"x".repeat(9)}😀${"y".repeat(90)}`),
    hang: () => new Promise(() => {}),
    variable: ({ name }) => text(String(process.env[name])),
    die: () => {
      process.stderr.write("out of\nmemory\n");
      setImmediate(() => process.exit(3));
      return new Promise(() => {});
    },
  };
  const numbers = { a: { type: "integer" }, b: { type: "integer" } };
  const schemas = {
    add: { type: "object", properties: numbers, required: ["a", "b"] },
    variable: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  };
  for (const [name, call] of Object.entries(tools)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const inputSchema = name in schemas ? fromJsonSchema(schemas[name]) : none;
    server.registerTool(name, { description: `Does ${name}.`, inputSchema }, call);
  }
  return server;
}

if (process.argv[1] === import.meta.filename) serveStdio(() => createServer(process.argv.slice(2)));
