// An MCP server for tests that writes its messages by hand, as one in another language does.
import { createInterface } from "node:readline";

export const schema =
  '{"type":"object","properties":{"10":{"maximum":18446744073709551615},"2":{"default":1.0}}}';
export const structured = '{"id":9007199254740993,"10":2.0,"2":1,"n":NaN}';

/** The answer to a message; empty where it asks for none. */
export function answer(line) {
  const { id, method, params } = JSON.parse(line);
  const reply = (result) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
  const text = (json) => reply(`{"content":[{"type":"text","text":${json}}]}`);
  switch (method) {
    case "initialize": {
      const about = '"capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}';
      return reply(`{"protocolVersion":${JSON.stringify(params.protocolVersion)},${about}}`);
    }
    case "tools/list": {
      const tools = ["echo", "data", "bytes"].map(
        (name) => `{"name":"${name}","inputSchema":${schema}}`,
      );
      return reply(`{"tools":[${tools.join(",")}]}`);
    }
    case "tools/call":
      if (params.name === "data") return reply(`{"content":[],"structuredContent":${structured}}`);
      return text(params.name === "bytes" ? '"\u00ff"' : JSON.stringify(line));
    default:
      if (id === undefined) return "";
      return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"no"}}`;
  }
}

/** One byte a character where there is a byte that is no UTF-8. */
export function bytesOf(text) {
  return Buffer.from(text, text.includes("\u00ff") ? "latin1" : "utf8");
}

if (process.argv[1] === import.meta.filename) {
  createInterface({ input: process.stdin }).on("line", (line) => {
    const text = answer(line);
    if (text !== "") process.stdout.write(bytesOf(`${text}\n`));
  });
}
