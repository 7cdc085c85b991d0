import { expect, test } from "vitest";
import { addressOf, isLocalAddress, isLocalHost } from "./local-host.ts";

test.each(["localhost", "::1", "127.0.0.1", "127.9.0.200"])("%s is this machine's own", (host) => {
  expect(isLocalHost(host)).toBe(true);
  expect(isLocalAddress(addressOf(host, 80))).toBe(true);
});

test.each(["0.0.0.0", "::", "localhost.example.com", "127.0.0.1.example.com", "1127.0.0.1", ""])(
  "%s is not",
  (host) => {
    expect(isLocalHost(host)).toBe(false);
    expect(isLocalAddress(addressOf(host, 80))).toBe(false);
  },
);

test("addresses are those that a client can use", () => {
  expect(addressOf("::1", 8484)).toBe("http://[::1]:8484");
  expect(addressOf("127.0.0.1", 80)).toBe("http://127.0.0.1:80");
  expect(isLocalAddress("null")).toBe(false);
});
