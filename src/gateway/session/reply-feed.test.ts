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

test("a reader that comes late has everything from the beginning", async () => {
  const { made, told } = feed();
  made.write("one ");
  const early = new Response(made.open()).text();
  made.write("two ");
  const late = new Response(made.open()).text();
  made.write("three");
  made.end();
  const after = new Response(made.open()).text();
  expect(await Promise.all([early, late, after])).toEqual(Array(3).fill("one two three"));
  expect(told).toEqual(["delivered", "delivered"]);
});

test("only when the last reader has left is the reply abandoned", async () => {
  const { made, told } = feed();
  const [first, second] = [made.open(), made.open()];
  await first.cancel();
  expect(told).toEqual([]);
  await second.cancel();
  expect(told).toEqual(["abandoned"]);
});

test("a reply that comes in one piece is handed on whatever its length", async () => {
  const { made, told } = feed();
  const reader = made.open();
  const whole = "x".repeat(3 * maxQueuedLength);
  made.write(whole);
  made.end();
  expect((await new Response(reader).text()).length).toBe(whole.length);
  expect(told).toEqual(["delivered"]);
});

test("a reader that does not read is cut off, and slows nobody", async () => {
  const { made, told } = feed();
  const slow = made.open();
  const chunk = "x".repeat(maxQueuedLength / 4);
  for (let count = 0; count < 6; count++) made.write(chunk);
  made.end();
  expect(told).toEqual(["abandoned"]);
  await expect(new Response(slow).text()).rejects.toThrow();
});
