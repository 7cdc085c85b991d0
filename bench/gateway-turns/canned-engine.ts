import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import { qwen3Folder } from "../bench-model.ts";

/** An engine that listens. */
export interface CannedEngine extends AsyncDisposable {
  readonly url: string;
}

/** The policy's turn: some 100 tokens of prose, and a call. */
const prose = "I compare the file with its test before the next change, and read on. ".repeat(5);
const call = '{"name": "shop_tool_1", "arguments": {"order_id": "#W1"}}';

/** Starts a server that answers each `POST /generate` of SGLang's protocol at once, with the same turn in one piece. */
export async function startCannedEngine(): Promise<CannedEngine> {
  const { codec, stopTokenIds } = await createRenderer({ modelDir: qwen3Folder() });
  const text = `${prose}\n<tool_call>\n${call}\n</tool_call>`;
  const ids = [...(await codec.encode(text)), stopTokenIds[0]!];
  const answers: Readonly<Record<string, unknown>> = {
    "/generate": {
      text,
      output_ids: ids,
      meta_info: {
        id: "canned",
        finish_reason: { type: "stop", matched: stopTokenIds[0] },
        weight_version: "1",
        completion_tokens: ids.length,
        output_token_logprobs: ids.map((id, index) => [-((index % 7) + 1) / 16, id, null]),
      },
    },
    "/model_info": { model_path: "canned", is_generation: true, weight_version: "1" },
    "/server_info": { context_length: 262_144, version: "0.5.23" },
  };
  const bodies = new Map(Object.entries(answers).map(([at, body]) => [at, JSON.stringify(body)]));
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      const body = bodies.get(request.url ?? "");
      response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(body ?? "{}");
    });
  });
  server.keepAliveTimeout = 120_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
