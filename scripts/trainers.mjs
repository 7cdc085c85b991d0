// The trainers whose code the acceptance programs run: the Python of each, its packages, and its sources.
// Packages that a program imports are pinned in integrations/accept/**/requirements.
import path from "node:path";
import { fileURLToPath } from "node:url";

const accept = fileURLToPath(new URL("../integrations/accept/", import.meta.url));

/** The kinds of programs: over an export, over a service that runs, over attempts with several rows, over side columns. */
export const kinds = {
  exports: { programs: accept, requirements: path.join(accept, "requirements") },
  live: {
    programs: path.join(accept, "live"),
    requirements: path.join(accept, "live/requirements"),
  },
  rows: {
    programs: path.join(accept, "rows"),
    requirements: path.join(accept, "rows/requirements"),
  },
  columns: {
    programs: path.join(accept, "columns"),
    requirements: path.join(accept, "columns/requirements"),
  },
};

/** The programs of trainers that call a service themselves. */
export const live = {
  "slime-live": "train_by_slime.py",
  "agent-lightning": "manage_by_agl.py",
  "nemo-gym": "collect_by_gym.py",
};

/** The Pythons that a trainer takes, as uv reads them. The others take any from 3.11. */
const pythons = {
  verl: ">=3.11,<3.13",
  skyrl: ">=3.12,<3.15",
  art: ">=3.12",
  "agent-lightning": ">=3.12,<3.13",
  "nemo-gym": ">=3.13",
};

export const pythonOf = (name) => pythons[name] ?? "python3";

const agentLightning = "agentlightning==1.0.2";
const verl = "verl==0.9.1";
const cookbook = "tinker-cookbook==0.6.1";

/** Packages whose own requirements would install engines and CUDA: only their files are read. */
const packages = {
  exports: {
    verl: [verl],
    skyrl: ["skyrl==0.4.0"],
    openrlhf: ["openrlhf==0.11.2"],
    areal: ["areal==1.0.4"],
    verifiers: ["verifiers==0.4.0"],
    art: ["openpipe-art==0.5.23"],
  },
  live: {
    "nemo-gym": ["nemo-gym==0.7.0"],
  },
  rows: {
    tinker: [cookbook],
    "agent-lightning": [agentLightning, verl],
  },
  columns: {
    "agent-lightning": [agentLightning, verl],
    tinker: [cookbook],
  },
};

/** Trainers that are on no package index, at the commits that were read. */
const repository = (owner, name, commit) => ({ owner, name, commit, into: `src/${name}` });
const slime = repository("THUDM", "slime", "624b824a898ab0ec1fcb4d373004c7f3852bf515");
const primeRl = repository(
  "PrimeIntellect-ai",
  "prime-rl",
  "559b44772e471d1538537b8805cc77f3824a5e64",
);
const verifiers = repository(
  "PrimeIntellect-ai",
  "verifiers",
  "a60a606ecc4d309247edf9ff92c3eabca362781f",
);
const sources = {
  exports: {
    slime: [slime],
    miles: [repository("radixark", "miles", "31f1ca961a94cb860cec3b2dea34ec332bfa8f76")],
    "prime-rl": [primeRl],
    "nemo-rl": [repository("NVIDIA-NeMo", "RL", "7ea279abfbeb698b092856d0dab61e7cf39bc909")],
  },
  live: { "slime-live": [slime] },
  rows: {
    "prime-rl": [verifiers],
  },
};

/** Sources for additional checks: prime-rl's conversion requires one commit of verifiers. */
const welcome = { exports: { verifiers: [primeRl, verifiers] } };

/** All packages of one kind or of all. The programs over rows and columns have those of the program over an export. */
const of = (table, kind, name) => [
  ...(kind === "rows" || kind === "columns" ? (table.exports?.[name] ?? []) : []),
  ...(table[kind]?.[name] ?? []),
];

/** Returns the specifications `NAME==VERSION` of packages whose files alone are installed. */
export const packagesOf = (kind, name) => of(packages, kind, name);

/** Returns the repositories that a program needs. */
export const sourcesOf = (kind, name) => of(sources, kind, name);

/** Returns the repositories for checks that are left out without them. */
export const welcomeOf = (kind, name) => welcome[kind]?.[name] ?? [];

/** Returns each specification of a package once. */
export function everyPackage() {
  return [...new Set(Object.values(packages).flatMap((each) => Object.values(each).flat()))];
}

/** Returns each repository once. */
export function everySource() {
  const every = [sources, welcome].flatMap((table) => Object.values(table));
  return [...new Set(every.flatMap((each) => Object.values(each).flat()))];
}
