import { expect, test } from "vitest";
import { testManifest } from "../../run/folder/run-folder.fixture.ts";
import { toSamplingSettings } from "../../run/policy/found-sampling.ts";
import { samplingSettings } from "./sampling-config.ts";
import { storedSettings } from "./stored-settings.ts";

test("storedSettings() omits settings that held a secret or are absent from the table", () => {
  const settings = { url: ["http://h/[redacted]"], "user-url": "http://u/v1", colour: "red" };
  const manifest = { ...testManifest, found: { settings } };
  expect(storedSettings(manifest)).toEqual({ "user-url": "http://u/v1" });
  expect(storedSettings({ ...testManifest, found: {} })).toEqual({});
});

test("storedSettings() has how a program's run drew tokens", () => {
  const sampling = { temperature: 0.6, topP: 0.9, topK: 5, minP: 0.1, seed: 3 };
  const settings = { temperature: 1, env: "storefront" };
  expect(storedSettings({ ...testManifest, found: { sampling, settings } })).toEqual({
    env: "storefront",
    temperature: 0.6,
    "top-p": 0.9,
    "top-k": 5,
    "min-p": 0.1,
    "sampling-seed": 3,
  });
  const table = [
    { name: "temperature", kind: { type: "number", min: 0, max: 1 }, help: "" },
  ] as const;
  expect(storedSettings({ ...testManifest, found: { sampling } }, table)).toEqual({
    temperature: 0.6,
  });
});

test("each sampling setting is read back from run.json", () => {
  const names: readonly string[] = samplingSettings.map(({ name }) => name);
  expect(Object.keys(toSamplingSettings({})).toSorted()).toEqual(names.toSorted());
});
