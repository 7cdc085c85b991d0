import { arealExporter } from "./trainers/areal.ts";
import { artExporter } from "./trainers/art.ts";
import type { Exporter } from "./exporter.ts";
import { nemoRlExporter } from "./trainers/nemo-rl.ts";
import { openrlhfExporter } from "./trainers/openrlhf.ts";
import { primeRlExporter } from "./trainers/prime-rl.ts";
import { skyrlExporter } from "./trainers/skyrl.ts";
import { milesExporter, slimeExporter } from "./trainers/slime.ts";
import { tinkerExporter } from "./trainers/tinker.ts";
import { trlExporter } from "./trainers/trl.ts";
import { verifiersExporter } from "./trainers/verifiers.ts";
import { verlExporter } from "./trainers/verl.ts";

/** The exporters of all trainers, by the name in `--to`. */
export const exporters = {
  slime: slimeExporter,
  miles: milesExporter,
  trl: trlExporter,
  verl: verlExporter,
  skyrl: skyrlExporter,
  openrlhf: openrlhfExporter,
  areal: arealExporter,
  "prime-rl": primeRlExporter,
  verifiers: verifiersExporter,
  "nemo-rl": nemoRlExporter,
  tinker: tinkerExporter,
  art: artExporter,
} as const satisfies Readonly<Record<string, Exporter>>;

/** The name of a trainer in `--to`. */
export type ExportTarget = keyof typeof exporters;
