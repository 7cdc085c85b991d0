import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Message } from "../message.ts";
import { createRenderer } from "./create-renderer.ts";
import { renderAt } from "./render-at.ts";

const modelDir = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));
const opening: readonly Message[] = [{ role: "user", content: "Hello?" }];
const then = new Date(2001, 1, 3);

/** A template that prints the date in each line of the user's. */
function dated(source: string): string {
  return source.replace("message.role + '\\n'", "message.role + strftime_now(' %d %b %Y') + '\\n'");
}

test("a conversation has the date that it is given, in its prompt and after each turn", async () => {
  const renderer = await createRenderer({ modelDir, editTemplate: dated });
  expect(renderer.now).toBeUndefined();
  const { text } = await renderer.prompt({ messages: opening, tools: [], now: then });
  expect(text).toContain("<|im_start|>user 03 Feb 2001\nHello?");
  const delta = await renderer.delta({
    history: opening,
    tools: [],
    lastSampledId: undefined,
    now: then,
    assistant: { role: "assistant", content: "Yes.", toolCalls: [] },
    environment: [{ role: "user", content: "Good." }],
  });
  expect(delta.text).toContain("<|im_start|>user 03 Feb 2001\nGood.");
});

test("a renderer's own date is exposed, and printed in all its renderings", async () => {
  const renderer = await createRenderer({ modelDir, editTemplate: dated, now: then });
  expect(renderer.now).toBe(then);
  const { text } = await renderer.prompt({ messages: opening, tools: [] });
  expect(text).toContain("<|im_start|>user 03 Feb 2001\nHello?");
});

test("a renderer for conversations of one day prints that, and leaves the other as it was", async () => {
  const renderer = await createRenderer({ modelDir, editTemplate: dated });
  const there = renderAt(renderer, then);
  expect(there.now).toBe(then);
  const conversation = { messages: opening, tools: [] };
  expect((await there.prompt(conversation)).text).toContain("user 03 Feb 2001\nHello?");
  expect((await renderer.prompt(conversation)).text).not.toContain("2001");
  const delta = await there.delta({
    history: opening,
    tools: [],
    lastSampledId: undefined,
    assistant: { role: "assistant", content: "Yes.", toolCalls: [] },
    environment: [{ role: "user", content: "Good." }],
  });
  expect(delta.text).toContain("user 03 Feb 2001\nGood.");
  expect(renderAt(renderer, undefined)).toBe(renderer);
});
