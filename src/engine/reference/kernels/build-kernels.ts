import { createModuleBuilder } from "../wasm/module-builder.ts";
import { addAccumulate } from "./accumulate.ts";
import { addAttend } from "./attend.ts";
import { addGate } from "./gate.ts";
import type { KernelShape } from "./kernel-shape.ts";
import { addMultiply } from "./multiply.ts";
import { addNormalize } from "./normalize.ts";
import { addRotate } from "./rotate.ts";
import { addExponentials, addLargest } from "./softmax.ts";

/** The exports of the kernels' module. The functions that add them describe them. */
export interface Kernels {
  multiply(
    x: number,
    xStride: number,
    rows: number,
    innerBytes: number,
    weights: number,
    panelStride: number,
    panels: number,
    out: number,
    outStride: number,
    base: number,
    baseStride: number,
  ): void;
  normalizeHidden(
    x: number,
    xStride: number,
    rows: number,
    weights: number,
    out: number,
    outStride: number,
  ): void;
  normalizeHead: Kernels["normalizeHidden"];
  rotate(
    x: number,
    rows: number,
    table: number,
    queries: number,
    queryHeadStride: number,
    layerOffset: number,
    headStride: number,
  ): void;
  attend(
    queries: number,
    rows: number,
    table: number,
    spans: number,
    spanEnd: number,
    limit: number,
    keys: number,
    values: number,
    out: number,
    outStride: number,
    scratch: number,
    zeros: number,
  ): void;
  gate(x: number, rows: number, out: number): void;
  largest(row: number, end: number): number;
  exponentials(row: number, end: number, largest: number, temperature: number, out: number): number;
}

/** The further kernels of a model with experts. */
export interface ExpertKernels extends Kernels {
  gateExpert: Kernels["gate"];
  accumulate(x: number, end: number, factor: number, out: number): void;
}

/** Builds the kernels of a model as a WebAssembly module that imports its memory. */
export function buildKernels(shape: KernelShape): Uint8Array<ArrayBuffer> {
  const { hiddenSize, headSize, feedForwardSize, normEpsilon: epsilon } = shape;
  const module = createModuleBuilder();
  const multiply = addMultiply(module);
  addAttend(module, { shape, multiply });
  addRotate(module, shape);
  addNormalize(module, { name: "normalizeHidden", width: hiddenSize, epsilon });
  addNormalize(module, { name: "normalizeHead", width: headSize, epsilon });
  addGate(module, { name: "gate", width: feedForwardSize });
  addLargest(module);
  addExponentials(module);
  if (shape.expertSize !== undefined) {
    addGate(module, { name: "gateExpert", width: shape.expertSize });
    addAccumulate(module);
  }
  return module.build();
}
