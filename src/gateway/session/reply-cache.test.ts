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
  const book = new ReplyCache();
  const kept = feed(1);
  book.keep("a", kept);
  expect(book.find(marked, "a")).toBe(kept);
  expect(book.find(new Headers({ "idempotency-key": "k" }), "a")).toBe(kept);
  expect(book.find(new Headers({ "x-stainless-retry-count": "0" }), "a")).toBe(undefined);
  expect(book.find(new Headers(), "a")).toBe(undefined);
  expect(book.find(marked, "b")).toBe(undefined);
});

test("the newest replies are kept within the limits of number and length", () => {
  const book = new ReplyCache();
  for (let count = 0; count < 20; count++) book.keep(`short ${count}`, feed(10));
  expect(book.find(marked, "short 3")).toBe(undefined);
  expect(book.find(marked, "short 4")).not.toBe(undefined);
  book.keep("long", feed(300 * 1024));
  expect(book.find(marked, "long")).not.toBe(undefined);
  expect(book.find(marked, "short 19")).toBe(undefined);
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
