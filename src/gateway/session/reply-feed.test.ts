import { expect, test } from "vitest";
import { maxQueuedLength, ReplyFeed } from "./reply-feed.ts";

function feed() {
  const told: string[] = [];
  const made = new ReplyFeed({
    onDelivered: () => told.push("delivered"),
    onAbandoned: () => told.push("abandoned"),
  });
  return { made, told };
}

test("a late reader receives everything from the start", async () => {
  const { made, told } = feed();
  made.write("one ");
  const early = new Response(made.open()).text();
  made.write("two ");
  const late = new Response(made.open()).text();
  made.write("three");
  made.end();
  const after = new Response(made.open()).text();
  expect(await Promise.all([early, late, after])).toEqual(Array(3).fill("one two three"));
  expect(told).toEqual(["delivered"]);
});

test("the reply is abandoned when the last reader has left", async () => {
  const { made, told } = feed();
  const [first, second] = [made.open(), made.open()];
  await first.cancel();
  expect(told).toEqual([]);
  await second.cancel();
  expect(told).toEqual(["abandoned"]);
});

test("a reply in one piece of any length is delivered", async () => {
  const { made, told } = feed();
  const reader = made.open();
  const whole = "x".repeat(3 * maxQueuedLength);
  made.write(whole);
  made.end();
  expect((await new Response(reader).text()).length).toBe(whole.length);
  expect(told).toEqual(["delivered"]);
});

test("a reader that does not read is cut off without delaying others", async () => {
  const { made, told } = feed();
  const slow = made.open();
  const chunk = "x".repeat(maxQueuedLength / 4);
  for (let count = 0; count < 6; count++) made.write(chunk);
  made.end();
  expect(told).toEqual(["abandoned"]);
  await expect(new Response(slow).text()).rejects.toThrow();
});

test("a reply is delivered once it is read completely", async () => {
  const { made, told } = feed();
  const reader = made.open().getReader();
  made.write("one");
  made.end();
  expect(told).toEqual([]);
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("one");
  expect(told).toEqual(["delivered"]);
  // Clients that know the last event leave without waiting for the stream's end.
  await reader.cancel();
  expect(told).toEqual(["delivered"]);
});

test("a reader that has the last event counts as delivered, even if it does not pull again", async () => {
  const { made, told } = feed();
  const reader = made.open().getReader();
  const first = reader.read();
  await new Promise((resolve) => setImmediate(resolve));
  made.write("one");
  made.end();
  expect(told).toEqual(["delivered"]);
  expect(new TextDecoder().decode((await first).value)).toBe("one");
});

test("a complete reply that its reader leaves unread is not delivered", async () => {
  const { made, told } = feed();
  const left = made.open();
  made.write("one");
  made.end();
  await left.cancel();
  expect(told).toEqual(["abandoned"]);
});

test("a slow reader is cut off once, through its own callback", async () => {
  const { made, told } = feed();
  const slow = made.open({ onCut: () => told.push("cut") });
  for (let count = 0; count < 6; count++) made.write("x".repeat(maxQueuedLength / 2));
  expect(told).toEqual(["cut", "abandoned"]);
  await slow.cancel();
  expect(told).toEqual(["cut", "abandoned"]);
});

test("a late reader of a long reply has time to read it", async () => {
  const { made, told } = feed();
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
  expect(told).toEqual(["delivered"]);
});
