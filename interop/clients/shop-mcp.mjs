// The shop's tools as an MCP server on standard input and output: `node shop-mcp.mjs URL`.
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const [url] = process.argv.slice(2);
const { tools } = await (await fetch(`${url}/task`)).json();

serveStdio(() => {
  const server = new McpServer({ name: "shop", version: "1.0.0" });
  for (const { function: tool } of tools) {
    const { name, description, parameters } = tool;
    const about = { description, inputSchema: fromJsonSchema(parameters) };
    server.registerTool(name, about, async (given) => {
      const body = JSON.stringify(given);
      const response = await fetch(`${url}/tools/${name}`, { method: "POST", body });
      const { observation, isError } = await response.json();
      return { content: [{ type: "text", text: observation }], isError };
    });
  }
  return server;
});
