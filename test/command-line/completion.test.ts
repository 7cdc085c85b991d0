import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { callCli } from "../support/call-cli.ts";

const { stdout: script } = await callCli(["completion", "bash"]);

/** Returns bash's offers for the last of the words. */
function complete(...words: string[]): string[] {
  const list = ["turnwright", ...words].map((word) => `'${word}'`).join(" ");
  const ask = `COMP_WORDS=(${list}); COMP_CWORD=${words.length}; _turnwright; echo "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync("bash", ["-c", `${script}\n${ask}`], { encoding: "utf8" });
  expect(stderr).toBe("");
  return stdout.trim().split(" ");
}

test("bash completes commands, flags and choices", () => {
  expect(complete("serve")).toEqual(["serve", "serve-test"]);
  expect(complete("rollout", "--max-t")).toContain("--max-turns");
  expect(complete("serve-test", "--protocol", "")).toEqual(["sglang", "vllm", "llama-cpp"]);
  expect(complete("rollout", "--quiet", "--engine", "ll")).toEqual(["llama-cpp", "llama"]);
  expect(complete("env", "ch")).toEqual(["check"]);
  expect(complete("env", "check", "./a.js", "--t")).toEqual(["--tasks", "--timeout"]);
  // A file's name is left to bash.
  expect(complete("rollout", "--config", "")).toEqual([""]);
});

const zshIsHere = spawnSync("zsh", ["--version"]).status === 0;

test.skipIf(!zshIsHere)("zsh accepts its script without any other setup (zsh)", async () => {
  const { stdout: zsh } = await callCli(["completion", "zsh"]);
  const home = await mkdtemp(path.join(tmpdir(), "turnwright-zsh-"));
  try {
    const ask =
      'COMP_WORDS=(turnwright rollout --max-t); COMP_CWORD=2; _turnwright; echo "${COMPREPLY[@]}"';
    const { stdout, stderr } = spawnSync(
      "zsh",
      ["-f", "-c", `${zsh}\necho $_comps[turnwright]\nemulate -R ksh\n${ask}`],
      { encoding: "utf8", env: { ...process.env, HOME: home, ZDOTDIR: home } },
    );
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^_bash_complete .*_turnwright\n[^]*--max-turns/);
  } finally {
    await rm(home, { recursive: true });
  }
});

test("the scripts of zsh and fish know the same, and another shell is refused", async () => {
  const { stdout: zsh } = await callCli(["completion", "zsh"]);
  expect(zsh).toBe(
    "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }\n" +
      `autoload -Uz bashcompinit && bashcompinit\n${script}`,
  );
  const { stdout: fish } = await callCli(["completion", "fish"]);
  expect(fish).toContain(
    "complete -c turnwright -n '__fish_seen_subcommand_from serve-test' -l protocol -x -a 'sglang vllm llama-cpp'\n",
  );
  expect((await callCli(["completion", "tcsh"])).stderr).toMatch(
    /Allowed choices are bash, zsh, fish\./,
  );
});
