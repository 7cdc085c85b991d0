import { expect, test } from "vitest";
import { maxQueuedLength, ReplyFeed } from "./reply-feed.ts";

function feed() {
  const events: string[] = [];
  const made = new ReplyFeed({
    onDelivered: () => events.push("delivered"),
    onAbandoned: () => events.push("abandoned"),
  });
  return { made, events };
}

test("a late reader receives everything from the start", async () => {
  const { made, events } = feed();
  made.write("one ");
  const early = new Response(made.open()).text();
  made.write("two ");
  const late = new Response(made.open()).text();
  made.write("three");
  made.end();
  const after = new Response(made.open()).text();
  expect(await Promise.all([early, late, after])).toEqual(Array(3).fill("one two three"));
  expect(events).toEqual(["delivered"]);
});

test("the reply is abandoned when the last reader has left", async () => {
  const { made, events } = feed();
  const [first, second] = [made.open(), made.open()];
  await first.cancel();
  expect(events).toEqual([]);
  await second.cancel();
  expect(events).toEqual(["abandoned"]);
});

test("a reply in one piece of any length is delivered", async () => {
  const { made, events } = feed();
  const reader = made.open();
  const whole = "x".repeat(3 * maxQueuedLength);
  made.write(whole);
  made.end();
  expect((await new Response(reader).text()).length).toBe(whole.length);
  expect(events).toEqual(["delivered"]);
});

test("a reader that does not read is cut off without delaying others", async () => {
  const { made, events } = feed();
  const slow = made.open();
  const chunk = "x".repeat(maxQueuedLength / 4);
  for (let count = 0; count < 6; count++) made.write(chunk);
  made.end();
  expect(events).toEqual(["abandoned"]);
  await expect(new Response(slow).text()).rejects.toThrow();
});

test("a reply is delivered once it is read completely", async () => {
  const { made, events } = feed();
  const reader = made.open().getReader();
  made.write("one");
  made.end();
  expect(events).toEqual([]);
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("one");
  expect(events).toEqual(["delivered"]);
  // Clients that know the last event leave without waiting for the stream's end.
  await reader.cancel();
  expect(events).toEqual(["delivered"]);
});

test("a reader that has the last event counts as delivered, even if it does not pull again", async () => {
  const { made, events } = feed();
  const reader = made.open().getReader();
  const first = reader.read();
  await new Promise((resolve) => setImmediate(resolve));
  made.write("one");
  made.end();
  expect(events).toEqual(["delivered"]);
  expect(new TextDecoder().decode((await first).value)).toBe("one");
});

test("a complete reply that its reader leaves unread is not delivered", async () => {
  const { made, events } = feed();
  const left = made.open();
  made.write("one");
  made.end();
  await left.cancel();
  expect(events).toEqual(["abandoned"]);
});

test("a slow reader is cut off once, through its own callback", async () => {
  const { made, events } = feed();
  const slow = made.open({ onCut: () => events.push("cut") });
  for (let count = 0; count < 6; count++) made.write("x".repeat(maxQueuedLength / 2));
  expect(events).toEqual(["cut", "abandoned"]);
  await slow.cancel();
  expect(events).toEqual(["cut", "abandoned"]);
});

test("a late reader of a long reply has time to read it", async () => {
  const { made, events } = feed();
  const early = new Response(made.open()).text();
  for (let count = 0; count < 6; count++) {
    made.write("x".repeat(maxQueuedLength / 2));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const late = new Response(made.open()).text();
  made.write("y");
  made.end();
  expect((await early).length).toBe(3 * maxQueuedLength + 1);
  expect((await late).length).toBe(3 * maxQueuedLength + 1);
  expect(events).toEqual(["delivered"]);
});
