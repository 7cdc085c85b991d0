import type { ExportTarget } from "../../export/exporters.ts";
import { readerOf, type Reader } from "./layout-reader.ts";
import { readArt } from "./read-art.ts";
import { readNemoRl } from "./read-nemo-rl.ts";
import { readOpenrlhf } from "./read-openrlhf.ts";
import { readPrimeRl } from "./read-prime-rl.ts";
import { readSkyrl } from "./read-skyrl.ts";
import { readSlime } from "./read-slime.ts";
import { readTinker } from "./read-tinker.ts";
import { readTrl } from "./read-trl.ts";
import { readVerifiers } from "./read-verifiers.ts";
import { readVerl } from "./read-verl.ts";

const readArealRow = readerOf({
  ids: "input_ids",
  mask: "loss_mask",
  logprobs: "logprobs",
  versions: "versions",
  reward: "rewards",
  group: "group",
});

/** Reads a row. Only the rows of attempts with several rows name their attempt. */
const readAreal: Reader = (record) => ({
  ...readArealRow(record),
  ...("rollout" in record && { rollout: record["rollout"] }),
  ...("lineage" in record && { lineage: record["lineage"] }),
});

/** The functions that read records, by trainer. */
export const exportedReaders: Readonly<Record<ExportTarget, Reader>> = {
  slime: readSlime,
  miles: readSlime,
  trl: readTrl,
  verl: readVerl,
  skyrl: readSkyrl,
  openrlhf: readOpenrlhf,
  areal: readAreal,
  "prime-rl": readPrimeRl,
  verifiers: readVerifiers,
  "nemo-rl": readNemoRl,
  tinker: readTinker,
  art: readArt,
};
