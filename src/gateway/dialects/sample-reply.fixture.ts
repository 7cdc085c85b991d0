import type { RequestedTurn, Reply, ReplyEvent, ReplyPart } from "../conversation.ts";
import type { GatewayDialect } from "./dialect.ts";

/** A turn with reasoning, text and two calls. */
export const sampleParts: readonly ReplyPart[] = [
  { type: "reasoning", id: "rs_1", signature: "sig_1", text: "I should look." },
  { type: "text", id: "msg_1", text: "Let me look." },
  { type: "call", id: "fc_1", callId: "call_1", name: "look", text: '{"a":  1.0}' },
  { type: "call", id: "fc_2", callId: "call_2", name: "look", text: "{}" },
];

export function askedFor(
  dialect: GatewayDialect,
  more: Readonly<Record<string, unknown>> = {},
): RequestedTurn {
  const said = [{ role: "user", content: "Hi" }];
  const field = dialect.name === "responses" ? "input" : "messages";
  return dialect.decode({ model: "policy", [field]: said, ...more });
}

/** Returns a finished reply with these parts. */
export function sampleReply(dialect: GatewayDialect, parts = sampleParts): Reply {
  const requested = askedFor(dialect, { stream_options: { include_usage: true } });
  return {
    start: { id: "reply_1", createdAtMs: 1_700_000_000_999, promptTokenCount: 100, requested },
    parts,
    finish: { type: "calls" },
    usage: {
      promptTokenCount: 100,
      cachedTokenCount: 60,
      sampledTokenCount: 20,
      reasoningTokenCount: 7,
    },
  };
}

/** Returns the events of the parts, each in two pieces. */
export function eventsOf(parts: readonly ReplyPart[]): readonly ReplyEvent[] {
  return parts.flatMap((part, index): ReplyEvent[] => {
    const middle = Math.ceil(part.text.length / 2);
    return [
      { type: "part-start", index, part: { ...part, text: "" } },
      { type: "part-delta", index, text: part.text.slice(0, middle) },
      { type: "part-delta", index, text: part.text.slice(middle) },
      { type: "part-end", index, part },
    ];
  });
}

/** Returns a complete stream as its readers see it: each event's name and data. */
export function streamOf(
  dialect: GatewayDialect,
  reply: Reply,
): readonly { name?: string; data: string }[] {
  const writer = dialect.createWriter(reply.start);
  const text =
    writer.start() +
    eventsOf(reply.parts)
      .map((event) => writer.write(event))
      .join("") +
    writer.end(reply);
  return text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const lines = block.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.find((line) => line.startsWith("data: "))!.slice(6);
      return name === undefined ? { data } : { name, data };
    });
}
