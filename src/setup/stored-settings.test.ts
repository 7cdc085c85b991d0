import { expect, test } from "vitest";
import { testManifest } from "../run/run-folder.fixture.ts";
import { storedSettings } from "./stored-settings.ts";

test("storedSettings() leaves out what held a secret, and what the table lacks", () => {
  const settings = { url: ["http://h/[redacted]"], "user-url": "http://u/v1", colour: "red" };
  const manifest = { ...testManifest, found: { settings } };
  expect(storedSettings(manifest)).toEqual({ "user-url": "http://u/v1" });
  expect(storedSettings({ ...testManifest, found: {} })).toEqual({});
});
