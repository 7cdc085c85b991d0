import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import type { Complex } from "./operand.ts";

/** The largest exponent that is computed by multiplication. */
const maxIntegerExponent = 100;

/** Makes a complex number. */
export function complex(real: number, imaginary: number): Complex {
  return { type: "complex", real, imaginary };
}

/** Python's product of two complex numbers. */
export function multiplyComplex(a: Complex, b: Complex): Complex {
  return complex(
    a.real * b.real - a.imaginary * b.imaginary,
    a.real * b.imaginary + a.imaginary * b.real,
  );
}

/**
 * Python's quotient of two complex numbers.
 *
 * **Source:** CPython 3.11, `Objects/complexobject.c` (`_Py_c_quot`).
 *
 * @throws PythonError `ZeroDivisionError`.
 */
export function divideComplex(a: Complex, b: Complex): Complex {
  if (b.real === 0 && b.imaginary === 0) {
    throw new PythonError("ZeroDivisionError", "complex division by zero");
  }
  if (Math.abs(b.real) >= Math.abs(b.imaginary)) {
    const ratio = b.imaginary / b.real;
    const denominator = b.real + b.imaginary * ratio;
    return complex(
      (a.real + a.imaginary * ratio) / denominator,
      (a.imaginary - a.real * ratio) / denominator,
    );
  }
  const ratio = b.real / b.imaginary;
  const denominator = b.real * ratio + b.imaginary;
  return complex(
    (a.real * ratio + a.imaginary) / denominator,
    (a.imaginary * ratio - a.real) / denominator,
  );
}

/**
 * Python's power of complex numbers.
 *
 * **Source:** CPython 3.11, `Objects/complexobject.c` (`complex_pow`).
 *
 * @throws PythonError `ZeroDivisionError`, `OverflowError`.
 */
export function powerComplex(base: Complex, exponent: Complex): Complex {
  const isSmallInteger =
    exponent.imaginary === 0 &&
    Number.isInteger(exponent.real) &&
    Math.abs(exponent.real) <= maxIntegerExponent;
  const power = isSmallInteger ? integerPower(base, exponent.real) : polarPower(base, exponent);
  if ([power.real, power.imaginary].some((part) => Math.abs(part) === Infinity)) {
    throw new PythonError("OverflowError", "complex exponentiation");
  }
  return power;
}

function integerPower(base: Complex, exponent: number): Complex {
  let power = complex(1, 0);
  let square = base;
  for (let rest = Math.abs(exponent); rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power = multiplyComplex(power, square);
    square = multiplyComplex(square, square);
  }
  if (exponent > 0) return power;
  if (power.real === 0 && power.imaginary === 0) throw zeroPower();
  return divideComplex(complex(1, 0), power);
}

function polarPower(base: Complex, exponent: Complex): Complex {
  if (base.real === 0 && base.imaginary === 0) {
    if (exponent.imaginary !== 0 || exponent.real < 0) throw zeroPower();
    return complex(0, 0);
  }
  const modulus = Math.hypot(base.real, base.imaginary);
  const angle = Math.atan2(base.imaginary, base.real);
  const length =
    exponent.imaginary === 0
      ? modulus ** exponent.real
      : modulus ** exponent.real / Math.exp(angle * exponent.imaginary);
  const phase =
    angle * exponent.real + (exponent.imaginary === 0 ? 0 : exponent.imaginary * Math.log(modulus));
  return complex(length * Math.cos(phase), length * Math.sin(phase));
}

function zeroPower(): PythonError {
  return new PythonError("ZeroDivisionError", "0.0 to a negative or complex power");
}
