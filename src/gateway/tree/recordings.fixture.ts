import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { ClientMessage, ReplyPart } from "../conversation.ts";
import type { GatewayDialect, Recollection } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { encodeItem } from "../dialects/responses-items.ts";

/** One request of a recorded client, with the sampled reply. */
export interface RecordedExchange {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly status: number;
  readonly sampled?: {
    readonly reasoning?: string;
    readonly text: string;
    readonly calls: readonly { id: string; name: string; arguments: string }[];
    readonly itemIds?: readonly string[];
    readonly responseId?: string;
  };
  readonly expected?: { readonly parent: number | null; readonly why: string };
}

/** Returns the recordings below a folder, by name. */
export function readRecordings(
  folder: string,
): Readonly<Record<string, readonly RecordedExchange[]>> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".json"))
    .toSorted();
  return Object.fromEntries(
    files.map((name) => {
      const text = readFileSync(path.join(folder, name), "utf8");
      const { exchanges } = JSON.parse(text) as { exchanges: RecordedExchange[] };
      return [name, exchanges];
    }),
  );
}

/** Returns the dialect of a recorded path, or `undefined` for a request without a turn. */
export function dialectOf({ method, path: where }: RecordedExchange): GatewayDialect | undefined {
  const [place = ""] = where.split("?");
  return method === "POST"
    ? Object.values(dialects).find((dialect) => place.endsWith(`/v1${dialect.path}`))
    : undefined;
}

/** Returns the parts of the reply that the recorded client received. */
export function recordedParts({ sampled }: RecordedExchange): readonly ReplyPart[] {
  const { reasoning = "", text = "", calls = [], itemIds = [] } = sampled ?? {};
  const ids = [...itemIds];
  const said: ReplyPart[] = [];
  if (reasoning !== "") {
    const id = ids.find((each) => each.startsWith("rs_")) ?? "";
    said.push({ type: "reasoning", id, signature: "", text: reasoning });
  }
  if (text !== "")
    said.push({ type: "text", id: ids.find((each) => each.startsWith("msg_")) ?? "", text });
  const callIds = ids.filter((each) => each.startsWith("fc_"));
  return [
    ...said,
    ...calls.map(({ id: callId, name, arguments: written }, index): ReplyPart => {
      return { type: "call", id: callIds[index] ?? "", callId, name, text: written };
    }),
  ];
}

/** The reply memory of a Responses server. */
export class RecordedMemory implements Recollection {
  readonly #items = new Map<string, object>();
  readonly #replies = new Map<string, readonly ClientMessage[]>();

  keep(replyId: string, requested: readonly ClientMessage[], parts: readonly ReplyPart[]): void {
    for (const part of parts) this.#items.set(part.id, encodeItem(part, false));
    const turn = dialects.responses.decode({ input: parts.map((part) => encodeItem(part, false)) });
    this.#replies.set(replyId, [...requested, ...turn.messages]);
  }

  item(id: string): object | undefined {
    return this.#items.get(id);
  }

  conversationOf(id: string): readonly ClientMessage[] | undefined {
    return this.#replies.get(id);
  }
}
