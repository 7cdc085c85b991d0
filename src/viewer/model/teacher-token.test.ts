import { expect, test } from "vitest";
import { differenceWords } from "./teacher-token.ts";

test("says by how much a teacher finds a token likelier than the policy", () => {
  expect(differenceWords(-0.25, -1)).toBe("0.7500 nats likelier than for the policy");
  expect(differenceWords(-2, -1.5)).toBe("0.5000 nats less likely than for the policy");
  expect(differenceWords(-1, -1.000_01)).toBe("as likely as for the policy");
});
