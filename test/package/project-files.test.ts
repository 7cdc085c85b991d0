import { access, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readRunConfig, runSettings } from "../../src/composition/config/run-config.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

async function content(file: string): Promise<string> {
  return await readFile(path.join(root, file), "utf8");
}

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(await content("package.json")) as Manifest;

test("the version to cite is the package's", async () => {
  const citation = await content("CITATION.cff");
  expect(/^version: (.+)$/m.exec(citation)?.[1]).toBe(manifest.version);
  expect(/^license: (.+)$/m.exec(citation)?.[1]).toBe(manifest.license);
});

describe("CI", () => {
  test("calls the script that everybody can call", async () => {
    const workflow = await content(".github/workflows/ci.yml");
    const [job] = workflow.split(/^ {2}python:$/m);
    const steps = [...job!.matchAll(/^ +- run: (.+)$/gm)].map(([, command]) => command);
    expect(steps).toEqual([".ci/run"]);
    // It can be executed.
    expect((await stat(path.join(root, ".ci/run"))).mode & 0o111).not.toBe(0);
  });

  test("begins with the oldest Node that the package takes", async () => {
    const [, list] = /node: \[(.+)\]/.exec(await content(".github/workflows/ci.yml"))!;
    expect(`>=${JSON.parse(`[${list}]`)[0] as string}`).toBe(manifest.engines.node);
  });
});

test("CONTRIBUTING.md names scripts and files that are there", async () => {
  const text = await content("CONTRIBUTING.md");
  const scripts = [...text.matchAll(/npm run ([a-z-]+)/g)].map(([, name]) => name!);
  for (const name of scripts) expect(Object.keys(manifest.scripts)).toContain(name);
  for (const [, link] of text.matchAll(/\]\(([^)#]+)/g)) await access(path.join(root, link!));
});

describe("the container", () => {
  test("has known instructions, and runs the package's command as an unprivileged user", async () => {
    const lines = (await content("Dockerfile"))
      .replaceAll("\\\n", "")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    const known = /^(FROM|WORKDIR|COPY|RUN|ENV|USER|ENTRYPOINT|CMD) \S/;
    expect(lines.filter((line) => !known.test(line))).toEqual([]);
    const [, entry] = /^ENTRYPOINT (.+)$/m.exec(lines.join("\n"))!;
    expect(JSON.parse(entry!)).toEqual(["turnwright"]);
    expect(lines).toContain("USER node");
    const images = lines.flatMap((line) => /^FROM node:(\d+)/.exec(line)?.[1] ?? []);
    for (const major of images) expect(Number(major)).toBeGreaterThanOrEqual(20);
  });

  test("does not receive the files that it builds itself", async () => {
    const ignored = (await content(".dockerignore")).trimEnd().split("\n");
    expect(ignored).toEqual(expect.arrayContaining([".git", "**/node_modules", "dist", "runs"]));
  });

  test("has settings that a run accepts", async () => {
    const [, rollout] = (await content("compose.yaml")).split("\n  rollout:\n");
    const words = [...rollout!.matchAll(/^ {6}- (--.+)$/gm)].map(([, word]) => word!);
    const settings = words.map((word): [string, string | number | string[]] => {
      const [, name, value] = /^--([a-z-]+)=(.+)$/.exec(word)!;
      const type = runSettings.find((setting) => setting.name === name)?.kind.type;
      const given = value!.replace(/\$\{MODEL:-(.+?)\}/, "$1");
      return [name!, type === "number" ? Number(given) : type === "list" ? [given] : given];
    });
    expect(readRunConfig(Object.fromEntries(settings))).toMatchObject({
      environment: { name: "storefront" },
      scope: { split: "train", tasks: "0-63", sampleCount: 8 },
      renderer: { modelDir: "hf:Qwen/Qwen3-0.6B" },
    });
  });
});
