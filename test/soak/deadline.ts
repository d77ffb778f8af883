// A wait that ends: with what it waits for, or with what it has waited for in vain.

export class Overdue extends Error {
  override readonly name = "Overdue";
}

export async function within<T>(ms: number, what: string, wait: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Overdue(`Waited ${ms} ms in vain for ${what}.`)), ms);
  try {
    return await Promise.race([wait, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
