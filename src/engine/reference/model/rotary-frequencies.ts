import type { DecoderShape, RotaryScaling } from "./decoder-shape.ts";

/**
 * Returns the angle by which each pair of a head's elements rotates per position, in radians. Each
 * step is rounded to single precision, as in the models' own code.
 *
 * **Source:** huggingface/transformers src/transformers/modeling_rope_utils.py (default, linear and
 * llama3 parameters).
 */
export function rotaryFrequencies({
  headSize,
  rotaryTheta,
  rotaryScaling,
}: Pick<DecoderShape, "headSize" | "rotaryTheta" | "rotaryScaling">): Float32Array {
  return Float32Array.from({ length: headSize / 2 }, (_, pair) => {
    const power = Math.fround(rotaryTheta ** Math.fround((2 * pair) / headSize));
    return scale(Math.fround(1 / power), rotaryScaling);
  });
}

function scale(frequency: number, scaling: RotaryScaling): number {
  switch (scaling.type) {
    case "none":
      return frequency;
    case "linear":
      return frequency / scaling.factor;
    case "llama3":
      return scaleLlama3(frequency, scaling);
  }
}

function scaleLlama3(
  frequency: number,
  scaling: Extract<RotaryScaling, { type: "llama3" }>,
): number {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContextLength } = scaling;
  const wavelength = (2 * Math.PI) / frequency;
  if (wavelength < originalContextLength / highFrequencyFactor) return frequency;
  if (wavelength > originalContextLength / lowFrequencyFactor) return frequency / factor;
  const kept =
    (originalContextLength / wavelength - lowFrequencyFactor) /
    (highFrequencyFactor - lowFrequencyFactor);
  return ((1 - kept) * frequency) / factor + kept * frequency;
}
