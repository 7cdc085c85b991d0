import { expect, test } from "vitest";
import { ReplyFeed } from "./reply-feed.ts";
import { requestKey, ReplyCache } from "./reply-cache.ts";

const marked = new Headers({ "x-stainless-retry-count": "2" });

function feed(length: number): ReplyFeed {
  const made = new ReplyFeed({ onDelivered: () => {}, onAbandoned: () => {} });
  made.write("x".repeat(length));
  return made;
}

test("only a request that is marked as a retry gets a kept reply", () => {
  const cache = new ReplyCache();
  const kept = feed(1);
  cache.keep("a", kept);
  expect(cache.find(marked, "a")).toBe(kept);
  expect(cache.find(new Headers({ "idempotency-key": "k" }), "a")).toBe(kept);
  expect(cache.find(new Headers({ "x-stainless-retry-count": "0" }), "a")).toBe(undefined);
  expect(cache.find(new Headers(), "a")).toBe(undefined);
  expect(cache.find(marked, "b")).toBe(undefined);
});

test("the newest replies are kept within the limits of number and length", () => {
  const cache = new ReplyCache();
  for (let count = 0; count < 20; count++) cache.keep(`short ${count}`, feed(10));
  expect(cache.find(marked, "short 3")).toBe(undefined);
  expect(cache.find(marked, "short 4")).not.toBe(undefined);
  cache.keep("long", feed(300 * 1024));
  expect(cache.find(marked, "long")).not.toBe(undefined);
  expect(cache.find(marked, "short 19")).toBe(undefined);
});

test("the key depends on dialect, idempotency key and body", () => {
  const body = "hash of {}";
  const keys = [
    requestKey("chat", new Headers(), body),
    requestKey("responses", new Headers(), body),
    requestKey("chat", new Headers({ "idempotency-key": "k" }), body),
    requestKey("chat", new Headers(), "hash of { }"),
  ];
  expect(new Set(keys).size).toBe(4);
  expect(requestKey("chat", marked, body)).toBe(keys[0]);
});
