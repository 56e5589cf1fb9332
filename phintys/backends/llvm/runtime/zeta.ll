; Hurwitz zeta function, which scipy.special.cython_special does not offer.
;
; zeta(x, q) = sum over k >= 0 of (q + k)**-x, by the formula of Euler and Maclaurin (DLMF 2.10.1):
; terms are added up to a = q + n >= max(12, x), then the rest of the sum is
;   a**(1-x) * (1/(x - 1) + (1/2 + sum over j of B(2j)/(2j)! * x(x+1)...(x+2j-2) * a**(1-2j))/a).
; Beyond max(12, x) the terms of the last sum fall faster than 6**-2j.
;
; For q < -64 that would be too many terms.  The sum over all integers k has period 1 in
; q, and is zeta(x, q) + (-1)**x zeta(x, 1 - q); so with 0 < u < 1, u = q + n:
;   zeta(x, q) = zeta(x, u) + (-1)**x (zeta(x, 1 - u) - zeta(x, 1 - q)).
; The last zeta is below 64**-x, which underflows where x > 200.  Far fewer than x terms are added
; where x is large: they become negligible.

@bernoulli = private constant [12 x double] [ ; B(2j)/(2j)!
  double 0x3FB5555555555555, double 0xBF56C16C16C16C17, double 0x3F01566ABC011567,
  double 0xBEABBD779334EF0B, double 0x3E566A8F2BF70EBE, double 0xBE022805D644267F,
  double 0x3DAD6DB2C4E09162, double 0xBD57DA4E1F79955C, double 0x3D0355871D652E9E,
  double 0xBCAF57D968CAACF1, double 0x3C5967E1F09C376F, double 0xBC0497D9033A2B5C]

declare double @pow(double, double)
declare double @llvm.floor.f64(double)
declare double @llvm.maxnum.f64(double, double)

declare double @llvm.ceil.f64(double)

define double @phintys.zeta(double %x, double %q, i32 %unused) {
entry:
  %x.below = fcmp ult double %x, 1.0
  br i1 %x.below, label %invalid, label %not.below
not.below:
  %x.one = fcmp oeq double %x, 1.0
  br i1 %x.one, label %infinite, label %not.one
not.one:
  %q.nan = fcmp uno double %q, %q
  br i1 %q.nan, label %invalid, label %q.number
q.number:
  %q.positive = fcmp ogt double %q, 0.0
  br i1 %q.positive, label %plain, label %negative
plain:
  %value = call double @added(double %x, double %q)
  ret double %value
negative:                                     ; a pole, or a power of a negative number
  %q.floor = call double @llvm.floor.f64(double %q)
  %pole = fcmp oeq double %q.floor, %q
  br i1 %pole, label %infinite, label %no.pole
no.pole:
  %x.floor = call double @llvm.floor.f64(double %x)
  %x.integer = fcmp oeq double %x.floor, %x
  br i1 %x.integer, label %integer, label %invalid
integer:
  %q.near = fcmp oge double %q, -64.0
  br i1 %q.near, label %plain, label %reflect
reflect:
  %q.ceil = call double @llvm.ceil.f64(double %q)
  %up = fsub double %q, %q.floor              ; u and 1 - u, each without rounding near 0
  %down = fsub double %q.ceil, %q
  %end = fsub double 1.0, %q
  %above = call double @added(double %x, double %up)
  %below = call double @added(double %x, double %down)
  %x.large = fcmp ogt double %x, 200.0
  %x.end = select i1 %x.large, double 200.0, double %x
  %beyond = call double @added(double %x.end, double %end)
  %between = fsub double %below, %beyond
  %x.half = fmul double %x, 0.5
  %x.half.floor = call double @llvm.floor.f64(double %x.half)
  %even = fcmp oeq double %x.half, %x.half.floor
  %between.minus = fneg double %between
  %signed = select i1 %even, double %between, double %between.minus
  %reflected = fadd double %above, %signed
  ret double %reflected
infinite:
  ret double 0x7FF0000000000000
invalid:
  ret double 0x7FF8000000000000
}

define private double @added(double %x, double %q) { ; for x > 1, q > -64
start:
  %power = fneg double %x
  %end = call double @llvm.maxnum.f64(double %x, double 12.0)
  br label %add
add:
  %a = phi double [%q, %start], [%a.next, %more]
  %sum = phi double [0.0, %start], [%sum.next, %more]
  %term = call double @pow(double %a, double %power)
  %far = fcmp oge double %a, %end
  br i1 %far, label %rest, label %more
more:
  %sum.next = fadd double %sum, %term
  %a.next = fadd double %a, 1.0
  %same = fcmp oeq double %sum.next, %sum
  %positive = fcmp ogt double %a, 0.0
  %negligible = and i1 %same, %positive
  br i1 %negligible, label %done, label %add
rest:
  %x.less = fsub double %x, 1.0
  %first = fdiv double %x, %a
  br label %correct
correct:
  %j = phi i64 [0, %rest], [%j.next, %correct]
  %bracket = phi double [0.5, %rest], [%bracket.next, %correct]
  %factor = phi double [%first, %rest], [%factor.next, %correct] ; x...(x+2j-2) * a**(1-2j)
  %at = getelementptr double, ptr @bernoulli, i64 %j
  %coefficient = load double, ptr %at
  %correction = fmul double %coefficient, %factor
  %bracket.next = fadd double %bracket, %correction
  %j.next = add i64 %j, 1
  %k = uitofp i64 %j.next to double
  %k.twice = fmul double %k, 2.0
  %high = fadd double %x, %k.twice
  %low = fsub double %high, 1.0
  %low.ratio = fdiv double %low, %a
  %high.ratio = fdiv double %high, %a
  %ratio = fmul double %low.ratio, %high.ratio
  %factor.next = fmul double %factor, %ratio
  %go = icmp ult i64 %j.next, 12
  br i1 %go, label %correct, label %total
total:
  %power.less = fsub double 1.0, %x
  %scale = call double @pow(double %a, double %power.less)
  %integral = fdiv double 1.0, %x.less
  %relative = fdiv double %bracket.next, %a
  %inner = fadd double %integral, %relative
  %tail = fmul double %scale, %inner
  %result = fadd double %sum, %tail
  ret double %result
done:
  ret double %sum.next
}
