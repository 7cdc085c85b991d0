#!/usr/bin/env node
// Takes the place of Docker's program in tests: a container is a folder in $DOCKER_STAND_IN and the
// processes that were started in it. Knows what createDockerSandboxes() asks of it, and refuses all else.
import { spawn } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

const root = process.env.DOCKER_STAND_IN;
const [command, ...rest] = process.argv.slice(2);
appendFileSync(path.join(root, "log.txt"), `${JSON.stringify([command, ...rest])}\n`);

const text = { type: "string" };
const flag = { type: "boolean" };
const options = {
  run: {
    detach: flag,
    rm: flag,
    label: text,
    memory: text,
    "memory-swap": text,
    cpus: text,
    "pids-limit": text,
    "cap-drop": text,
    "security-opt": text,
    network: text,
    workdir: text,
    entrypoint: text,
    name: text,
  },
  ps: { all: flag, "no-trunc": flag, filter: text, format: text },
  rm: { force: flag, volumes: flag },
  inspect: { format: text },
};

/** Ends as Docker does where it is not satisfied. */
function fail(message, code = 1) {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

function containerOf(id) {
  const dir = path.join(root, id);
  if (!existsSync(dir)) fail(`Error response from daemon: No such container: ${id}`);
  return dir;
}

function kill(dir) {
  for (const pid of readdirSync(path.join(dir, "pids"))) {
    try {
      process.kill(-Number(pid), "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}

function read(name, args = rest) {
  return parseArgs({ args, options: options[name], allowPositionals: true, strict: true });
}

if (existsSync(path.join(root, "down"))) {
  fail(
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
  );
}
switch (command) {
  case "run": {
    // What follows is the container's command.
    const { values, positionals } = read("run", rest.slice(0, rest.indexOf("-c")));
    if (positionals[0] === "no-such-image") {
      fail(`Unable to find image 'no-such-image:latest' locally\n\nRun 'docker run --help'`, 125);
    }
    const id = `c0ffee${readdirSync(root).length}`;
    mkdirSync(path.join(root, id, "pids"), { recursive: true });
    writeFileSync(path.join(root, id, "label"), values.label.replace(/^[^=]*=/, ""));
    process.stdout.write(`${id}\n`);
    break;
  }
  case "exec": {
    const args = rest.slice();
    const env = {};
    while (args[0].startsWith("--")) {
      const name = args.shift();
      if (name === "--interactive") continue;
      const value = args.shift();
      if (name === "--env") {
        const [, key, given] = /^([^=]*)(?:=(.*))?$/s.exec(value);
        env[key] = given ?? process.env[key];
      } else if (name !== "--workdir") fail(`unknown flag: ${name}`, 125);
    }
    const dir = containerOf(args.shift());
    if (existsSync(path.join(dir, "paused"))) {
      fail("Error response from daemon: Container is paused, unpause the container before exec");
    }
    if (args.join(" ") === "sh -c kill -9 -1") {
      kill(dir);
      process.exit(137);
    }
    const detached = true;
    const cwd = path.join(dir);
    const child = spawn(args[0], args.slice(1), {
      stdio: "inherit",
      detached,
      cwd,
      env: { ...process.env, ...env },
    });
    try {
      writeFileSync(path.join(dir, "pids", String(child.pid)), "");
    } catch (error) {
      // The command may have removed the container's folder already.
      if (error.code !== "ENOENT") throw error;
    }
    child.on("exit", (code) => process.exit(code ?? 137));
    break;
  }
  case "ps":
    read("ps");
    for (const id of readdirSync(root).filter((name) => name.startsWith("c0ffee"))) {
      process.stdout.write(`${id} ${readFileSync(path.join(root, id, "label"), "utf8")}\n`);
    }
    break;
  case "rm":
    for (const id of read("rm").positionals) {
      kill(containerOf(id));
      rmSync(path.join(root, id), { recursive: true });
    }
    break;
  case "inspect": {
    const dir = containerOf(read("inspect").positionals[0]);
    process.stdout.write(`${!existsSync(path.join(dir, "paused"))}\n`);
    break;
  }
  default:
    fail(`docker: '${command}' is not a docker command.`);
}
