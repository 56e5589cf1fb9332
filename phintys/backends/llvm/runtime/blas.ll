; BLAS calls in row-major terms, for one type: ${T} is float or double, ${p} is s or d.
;
; Strides are in elements and may be anything; what BLAS cannot take as it is (a matrix without a
; unit stride, a vector with a stride that is not positive) is computed by plain loops.  A routine
; returns 1 where a size does not fit BLAS's 32-bit integers, and not 0 where a signal ends it.
;
; Large products go in blocks of rows or columns: signals are handled between them.

declare void @blas_${p}gemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare void @blas_${p}gemv(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare void @blas_${p}ger(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare $T @blas_${p}dot(ptr, ptr, ptr, ptr, ptr)
declare ptr @phintys_made(ptr, ptr)
@${p}product_cell = external global ptr
@${p}product_make = external global i8
@${p}short_cell = external global ptr
@${p}short_make = external global i8
@${p}narrow_cell = external global ptr
@${p}narrow_make = external global i8
@${p}dots_cell = external global ptr
@${p}dots_make = external global i8
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare preserve_mostcc i64 @phintys_poll() cold

; Whether work is more than %most and can be split: there are more than %least rows.
define internal i1 @huge(i64 %work, i64 %most, i64 %rows, i64 %least) {
  %more = icmp ugt i64 %work, %most
  %many = icmp sgt i64 %rows, %least
  %both = and i1 %more, %many
  ret i1 %both
}

; How many rows are a block of at most %most, if each is %work: a multiple of 64, at least %least.
define internal i64 @block(i64 %work, i64 %most, i64 %least) {
  %some = call i64 @llvm.smax.i64(i64 %work, i64 1)
  %fitting = udiv i64 %most, %some
  %whole = and i64 %fitting, -64
  %block = call i64 @llvm.smax.i64(i64 %whole, i64 %least)
  ret i64 %block
}

; Whether BLAS can take a matrix whose rows are contiguous: x[r, c] at r*s + c*u.
define internal i1 @rows(i64 %r, i64 %c, i64 %s, i64 %u) {
  %unit = icmp eq i64 %u, 1
  %narrow = icmp sle i64 %c, 1
  %a = or i1 %unit, %narrow
  %apart = icmp sge i64 %s, %c
  %positive = icmp sgt i64 %s, 0
  %wide = and i1 %apart, %positive
  %flat = icmp sle i64 %r, 1
  %b = or i1 %wide, %flat
  %ok = and i1 %a, %b
  ret i1 %ok
}

; The leading dimension of such a matrix.
define internal i64 @leading(i64 %r, i64 %c, i64 %s) {
  %flat = icmp sle i64 %r, 1
  %least = call i64 @llvm.smax.i64(i64 %c, i64 1)
  %ld = select i1 %flat, i64 %least, i64 %s
  ret i64 %ld
}

; Whether BLAS can take a matrix, and how: 0 no, 1 rows are contiguous, 2 columns are.
define internal i64 @layout(i64 %r, i64 %c, i64 %s, i64 %u) {
  %rows = call i1 @rows(i64 %r, i64 %c, i64 %s, i64 %u)
  %columns = call i1 @rows(i64 %c, i64 %r, i64 %u, i64 %s)
  %two = select i1 %columns, i64 2, i64 0
  %answer = select i1 %rows, i64 1, i64 %two
  ret i64 %answer
}

; The step of a vector of length %n, 0 where BLAS cannot take it.
define internal i64 @step(i64 %n, i64 %s) {
  %short = icmp sle i64 %n, 1
  %one = select i1 %short, i64 1, i64 %s
  %bad = icmp slt i64 %one, 0
  %step = select i1 %bad, i64 0, i64 %one
  ret i64 %step
}

; Whether numbers fit 32 bits.
define internal i1 @fit(i64 %a, i64 %b, i64 %c, i64 %d) {
  %ab = or i64 %a, %b
  %cd = or i64 %c, %d
  %all = or i64 %ab, %cd
  %ok = icmp ult i64 %all, 2147483648
  ret i1 %ok
}

; The function for products with few columns; null with an exception.
define internal ptr @product(i64 %n) {
  %narrow = icmp slt i64 %n, $lanes
  %short = icmp slt i64 %n, $lanes2
  %cell.wide = select i1 %short, ptr @${p}short_cell, ptr @${p}product_cell
  %make.wide = select i1 %short, ptr @${p}short_make, ptr @${p}product_make
  %cell = select i1 %narrow, ptr @${p}narrow_cell, ptr %cell.wide
  %make = select i1 %narrow, ptr @${p}narrow_make, ptr %make.wide
  %made = call ptr @phintys_made(ptr %cell, ptr %make)
  ret ptr %made
}

define internal ptr @place(ptr %p, i64 %i, i64 %s) {
  %o = mul i64 %i, %s
  %q = getelementptr $T, ptr %p, i64 %o
  ret ptr %q
}

define internal $T @at(ptr %p, i64 %i, i64 %s, i64 %j, i64 %u) {
  %a = mul i64 %i, %s
  %b = mul i64 %j, %u
  %o = add i64 %a, %b
  %q = getelementptr $T, ptr %p, i64 %o
  %v = load $T, ptr %q
  ret $T %v
}

; c[m, n] = alpha * a[m, k] @ b[k, n] + beta * c by plain loops, any strides.
define internal i64 @plain(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, i64 %cu, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, i64 %bu, $T %beta) {
entry:
  %fresh = fcmp oeq $T %beta, 0.0
  %first = call i64 @llvm.smin.i64(i64 %k, i64 $long)
  br label %rows
rows:
  %i = phi i64 [0, %entry], [%i.next, %row.end]
  %row.work = phi i64 [0, %entry], [%work, %row.end]
  %i.more = icmp slt i64 %i, %m
  br i1 %i.more, label %columns, label %done
columns:
  %j = phi i64 [0, %rows], [%j.next, %column.end], [%j.next, %asked]
  %work = phi i64 [%row.work, %rows], [%work.next, %column.end], [0, %asked]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %sum, label %row.end
sum:
  %l = phi i64 [0, %columns], [%l.next, %term], [%l, %pause]
  %s = phi $T [0.0, %columns], [%s.next, %term], [%s, %pause]
  %end = phi i64 [%first, %columns], [%end, %term], [%further, %pause]
  %l.more = icmp slt i64 %l, %end
  br i1 %l.more, label %term, label %ended
term:
  %x = call $T @at(ptr %a, i64 %i, i64 %as, i64 %l, i64 %au)
  %y = call $T @at(ptr %b, i64 %l, i64 %bs, i64 %j, i64 %bu)
  %xy = fmul $T %x, %y
  %s.next = fadd $T %s, %xy
  %l.next = add i64 %l, 1
  br label %sum
ended:
  %l.left = icmp slt i64 %l, %k
  br i1 %l.left, label %pause, label %store
pause:
  %some = add i64 %l, $long
  %further = call i64 @llvm.smin.i64(i64 %k, i64 %some)
  %paused = call preserve_mostcc i64 @phintys_poll()
  %continue = icmp eq i64 %paused, 0
  br i1 %continue, label %sum, label %stop
store:
  %ci = mul i64 %i, %cs
  %cj = mul i64 %j, %cu
  %co = add i64 %ci, %cj
  %p = getelementptr $T, ptr %c, i64 %co
  %new = fmul $T %alpha, %s
  br i1 %fresh, label %column.end, label %scale
scale:
  %old = load $T, ptr %p
  %scaled = fmul $T %beta, %old
  %total = fadd $T %new, %scaled
  br label %column.end
column.end:
  %v = phi $T [%new, %store], [%total, %scale]
  store $T %v, ptr %p
  %j.next = add i64 %j, 1
  %work.sum = add i64 %work, %k
  %work.next = add i64 %work.sum, 1
  %much = icmp ugt i64 %work.next, $long
  br i1 %much, label %asked, label %columns
asked:
  %status = call preserve_mostcc i64 @phintys_poll()
  %good = icmp eq i64 %status, 0
  br i1 %good, label %columns, label %stop
row.end:
  %i.next = add i64 %i, 1
  br label %rows
done:
  ret i64 0
stop:
  ret i64 1
}

; c[m, n] = alpha * a[m, k] @ b[k, n] + beta * c
define i64 @phintys_${p}gemm(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, i64 %cu, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, i64 %bu, $T %beta) {
  %column = icmp eq i64 %n, 1
  br i1 %column, label %one.column, label %several
one.column:
  %r0 = call i64 @phintys_${p}gemv(i64 %m, i64 %k, $T %alpha, ptr %c, i64 %cs, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, $T %beta)
  ret i64 %r0
several:
  %lc = call i64 @layout(i64 %m, i64 %n, i64 %cs, i64 %cu)
  %la = call i64 @layout(i64 %m, i64 %k, i64 %as, i64 %au)
  %lb = call i64 @layout(i64 %k, i64 %n, i64 %bs, i64 %bu)
  %any = mul i64 %la, %lb
  %all = mul i64 %any, %lc
  %can = icmp ne i64 %all, 0
  br i1 %can, label %blas, label %loops
loops:
  %looped = call i64 @plain(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, i64 %cu, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, i64 %bu, $T %beta)
  ret i64 %looped
blas:
  ; a target with contiguous columns is a transposed problem
  %turn = icmp eq i64 %lc, 2
  br i1 %turn, label %turned, label %straight
turned:
  %r1 = call i64 @phintys_${p}gemm_rows(i64 %n, i64 %m, i64 %k, $T %alpha, ptr %c, i64 %cu, ptr %b, i64 %bu, i64 %bs, ptr %a, i64 %au, i64 %as, $T %beta)
  ret i64 %r1
straight:
  %r2 = call i64 @phintys_${p}gemm_rows(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, i64 %bu, $T %beta)
  ret i64 %r2
}

; The same for each item of a batch; ct, at and bt are the strides from item to item.
define i64 @phintys_${p}gemms(i64 %count, i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %ct, i64 %cs, i64 %cu, ptr %a, i64 %at, i64 %as, i64 %au, ptr %b, i64 %bt, i64 %bs, i64 %bu, $T %beta) {
entry:
  %mn = mul i64 %m, %n
  %work = mul i64 %mn, %k
  %item = add i64 %work, $turn
  %fitting = udiv i64 $long, %item
  %turn = call i64 @llvm.smax.i64(i64 %fitting, i64 1)
  %lc = call i64 @layout(i64 %m, i64 %n, i64 %cs, i64 %cu)
  %la = call i64 @layout(i64 %m, i64 %k, i64 %as, i64 %au)
  %lb = call i64 @layout(i64 %k, i64 %n, i64 %bs, i64 %bu)
  %any = mul i64 %la, %lb
  %can = icmp ne i64 %any, 0
  %straight = icmp eq i64 %lc, 1
  %few = icmp sle i64 %n, $largest
  %several = icmp sgt i64 %n, 1
  %light = icmp ult i64 %work, $long
  %fits = and i1 %can, %straight
  %short = and i1 %few, %several
  %both = and i1 %fits, %short
  %narrow = and i1 %both, %light
  br i1 %narrow, label %make, label %turns
make:
  %made = call ptr @product(i64 %n)
  %unmade = icmp eq ptr %made, null
  br i1 %unmade, label %failed, label %turns
turns:
  %product = phi ptr [null, %entry], [%made, %make]
  br label %some
some:
  %i = phi i64 [0, %turns], [%next, %polled]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %begin, label %done
begin:
  %left = sub i64 %count, %i
  %size = call i64 @llvm.smin.i64(i64 %turn, i64 %left)
  %next = add i64 %i, %size
  br i1 %narrow, label %together, label %each
together:
  %c1 = call ptr @place(ptr %c, i64 %i, i64 %ct)
  %a1 = call ptr @place(ptr %a, i64 %i, i64 %at)
  %b1 = call ptr @place(ptr %b, i64 %i, i64 %bt)
  call void %product(i64 %size, i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c1, i64 %cs, i64 %ct, ptr %a1, i64 %as, i64 %au, i64 %at, ptr %b1, i64 %bs, i64 %bu, i64 %bt, $T %beta)
  br label %poll
each:
  %j = phi i64 [%i, %begin], [%j.next, %one]
  %j.more = icmp slt i64 %j, %next
  br i1 %j.more, label %one, label %poll
one:
  %c2 = call ptr @place(ptr %c, i64 %j, i64 %ct)
  %a2 = call ptr @place(ptr %a, i64 %j, i64 %at)
  %b2 = call ptr @place(ptr %b, i64 %j, i64 %bt)
  %status = call i64 @phintys_${p}gemm(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c2, i64 %cs, i64 %cu, ptr %a2, i64 %as, i64 %au, ptr %b2, i64 %bs, i64 %bu, $T %beta)
  %good = icmp eq i64 %status, 0
  %j.next = add i64 %j, 1
  br i1 %good, label %each, label %failed
poll:
  %last = icmp eq i64 %next, %count
  br i1 %last, label %done, label %ask
ask:
  %paused = call preserve_mostcc i64 @phintys_poll()
  %on = icmp eq i64 %paused, 0
  br i1 %on, label %polled, label %failed
polled:
  br label %some
done:
  ret i64 0
failed:
  ret i64 1
}

; The same where the rows of c are contiguous and a, b have a layout.  To BLAS, whose matrices
; have contiguous columns, everything looks transposed: c.T = b.T @ a.T.
define internal i64 @phintys_${p}gemm_rows(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, i64 %bu, $T %beta) {
  %ints = alloca [6 x i32]
  %floats = alloca [2 x $T]
  %chars = alloca [2 x i8]
  %mn = mul i64 %m, %n
  %work = mul i64 %mn, %k
  %much = icmp ugt i64 %work, $long
  br i1 %much, label %look, label %whole
look:
  %longest = call i64 @llvm.smax.i64(i64 %m, i64 %n)
  %huge = call i1 @huge(i64 %work, i64 $gemm, i64 %longest, i64 $block)
  br i1 %huge, label %blocks, label %whole
blocks:
  %several = call i64 @phintys_${p}gemm_blocks(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, i64 %bu, $T %beta)
  ret i64 %several
whole:
  %few = icmp sle i64 %n, $largest
  br i1 %few, label %narrow, label %begin
narrow:
  %product = call ptr @product(i64 %n)
  %unmade = icmp eq ptr %product, null
  br i1 %unmade, label %failed, label %multiply
failed:
  ret i64 1
multiply:
  call void %product(i64 1, i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, i64 0, ptr %a, i64 %as, i64 %au, i64 0, ptr %b, i64 %bs, i64 %bu, i64 0, $T %beta)
  br label %end
begin:
  %a.rows = call i1 @rows(i64 %m, i64 %k, i64 %as, i64 %au)
  %b.rows = call i1 @rows(i64 %k, i64 %n, i64 %bs, i64 %bu)
  %lda.r = call i64 @leading(i64 %m, i64 %k, i64 %as)
  %lda.c = call i64 @leading(i64 %k, i64 %m, i64 %au)
  %ldb.r = call i64 @leading(i64 %k, i64 %n, i64 %bs)
  %ldb.c = call i64 @leading(i64 %n, i64 %k, i64 %bu)
  %lda = select i1 %a.rows, i64 %lda.r, i64 %lda.c
  %ldb = select i1 %b.rows, i64 %ldb.r, i64 %ldb.c
  %ldc = call i64 @leading(i64 %m, i64 %n, i64 %cs)
  %fit1 = call i1 @fit(i64 %m, i64 %n, i64 %k, i64 %ldc)
  br i1 %fit1, label %second, label %large
second:
  %fit2 = call i1 @fit(i64 %lda, i64 %ldb, i64 0, i64 0)
  br i1 %fit2, label %call, label %large
call:
  %ta = select i1 %a.rows, i8 78, i8 84
  %tb = select i1 %b.rows, i8 78, i8 84
  %p.tb = getelementptr i8, ptr %chars, i64 1
  store i8 %ta, ptr %chars
  store i8 %tb, ptr %p.tb
  %p.m = call ptr @int(ptr %ints, i64 0, i64 %m)
  %p.n = call ptr @int(ptr %ints, i64 1, i64 %n)
  %p.k = call ptr @int(ptr %ints, i64 2, i64 %k)
  %p.lda = call ptr @int(ptr %ints, i64 3, i64 %lda)
  %p.ldb = call ptr @int(ptr %ints, i64 4, i64 %ldb)
  %p.ldc = call ptr @int(ptr %ints, i64 5, i64 %ldc)
  %p.beta = getelementptr $T, ptr %floats, i64 1
  store $T %alpha, ptr %floats
  store $T %beta, ptr %p.beta
  call void @blas_${p}gemm(ptr %p.tb, ptr %chars, ptr %p.n, ptr %p.m, ptr %p.k, ptr %floats, ptr %b, ptr %p.ldb, ptr %a, ptr %p.lda, ptr %p.beta, ptr %c, ptr %p.ldc)
  br label %end
end:
  br i1 %much, label %ask, label %done
ask:
  %status = call preserve_mostcc i64 @phintys_poll()
  ret i64 %status
done:
  ret i64 0
large:
  ret i64 1
}

; The same in blocks of the longer side of c.
define internal i64 @phintys_${p}gemm_blocks(i64 %m, i64 %n, i64 %k, $T %alpha, ptr %c, i64 %cs, ptr %a, i64 %as, i64 %au, ptr %b, i64 %bs, i64 %bu, $T %beta) {
entry:
  %down = icmp sge i64 %m, %n
  %length = select i1 %down, i64 %m, i64 %n
  %across = select i1 %down, i64 %n, i64 %m
  %work = mul i64 %across, %k
  %block = call i64 @block(i64 %work, i64 $gemm, i64 $block)
  %c.step = select i1 %down, i64 %cs, i64 1
  %a.step = select i1 %down, i64 %as, i64 0
  %b.step = select i1 %down, i64 0, i64 %bu
  br label %turn
turn:
  %i = phi i64 [0, %entry], [%next, %check]
  %left = sub i64 %length, %i
  %size = call i64 @llvm.smin.i64(i64 %left, i64 %block)
  %rows = select i1 %down, i64 %size, i64 %m
  %columns = select i1 %down, i64 %n, i64 %size
  %c.at = call ptr @place(ptr %c, i64 %i, i64 %c.step)
  %a.at = call ptr @place(ptr %a, i64 %i, i64 %a.step)
  %b.at = call ptr @place(ptr %b, i64 %i, i64 %b.step)
  %status = call i64 @phintys_${p}gemm_rows(i64 %rows, i64 %columns, i64 %k, $T %alpha, ptr %c.at, i64 %cs, ptr %a.at, i64 %as, i64 %au, ptr %b.at, i64 %bs, i64 %bu, $T %beta)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %check, label %out
check:
  %next = add i64 %i, %size
  %more = icmp slt i64 %next, %length
  br i1 %more, label %turn, label %out
out:
  ret i64 %status
}

define internal ptr @int(ptr %ints, i64 %i, i64 %value) {
  %p = getelementptr i32, ptr %ints, i64 %i
  %narrow = trunc i64 %value to i32
  store i32 %narrow, ptr %p
  ret ptr %p
}

; y[m] = alpha * a[m, k] @ x[k] + beta * y
define i64 @phintys_${p}gemv(i64 %m, i64 %k, $T %alpha, ptr %y, i64 %ys, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, $T %beta) {
  %ints = alloca [5 x i32]
  %floats = alloca [2 x $T]
  %char = alloca i8
  %work = mul i64 %m, %k
  %much = icmp ugt i64 %work, $long
  br i1 %much, label %look, label %whole
look:
  %huge = call i1 @huge(i64 %work, i64 $gemv, i64 %m, i64 64)
  br i1 %huge, label %blocks, label %whole
blocks:
  %several = call i64 @phintys_${p}gemv_blocks(i64 %m, i64 %k, $T %alpha, ptr %y, i64 %ys, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, $T %beta)
  ret i64 %several
whole:
  %la = call i64 @layout(i64 %m, i64 %k, i64 %as, i64 %au)
  %incy = call i64 @step(i64 %m, i64 %ys)
  %incx = call i64 @step(i64 %k, i64 %xs)
  %some = mul i64 %la, %k
  %both = mul i64 %incx, %incy
  %all = mul i64 %some, %both
  %can = icmp ne i64 %all, 0
  br i1 %can, label %blas, label %loops
loops:
  ; also k = 0, where BLAS would not touch y
  %looped = call i64 @plain(i64 %m, i64 1, i64 %k, $T %alpha, ptr %y, i64 %ys, i64 1, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, i64 1, $T %beta)
  ret i64 %looped
blas:
  %rows = icmp eq i64 %la, 1
  %thin = icmp sle i64 %k, $largest
  %inc = mul i64 %incx, %incy
  %dense = icmp eq i64 %inc, 1
  %short.rows = and i1 %rows, %thin
  %few = and i1 %short.rows, %dense
  br i1 %few, label %short, label %long
short:
  %dots = call ptr @phintys_made(ptr @${p}dots_cell, ptr @${p}dots_make)
  %unmade = icmp eq ptr %dots, null
  br i1 %unmade, label %failed, label %add
failed:
  ret i64 1
add:
  call void %dots(i64 %m, i64 %k, $T %alpha, ptr %y, ptr %a, i64 %as, ptr %x, $T %beta)
  br label %end
long:
  %ld.r = call i64 @leading(i64 %m, i64 %k, i64 %as)
  %ld.c = call i64 @leading(i64 %k, i64 %m, i64 %au)
  %ld = select i1 %rows, i64 %ld.r, i64 %ld.c
  %fit1 = call i1 @fit(i64 %m, i64 %k, i64 %ld, i64 %incx)
  br i1 %fit1, label %second, label %large
second:
  %fit2 = call i1 @fit(i64 %incy, i64 0, i64 0, i64 0)
  br i1 %fit2, label %begin, label %large
begin:
  %fresh = fcmp oeq $T %beta, 0.0
  br i1 %fresh, label %clear, label %call
clear:
  ; not every BLAS ignores NaN in y
  %packed = icmp eq i64 %incy, 1
  br i1 %packed, label %clear.all, label %clear.each
clear.all:
  %past = getelementptr $T, ptr null, i64 %m
  %bytes = ptrtoint ptr %past to i64
  call void @llvm.memset.p0.i64(ptr %y, i8 0, i64 %bytes, i1 false)
  br label %call
clear.each:
  %cleared = call i64 @plain(i64 %m, i64 1, i64 0, $T %alpha, ptr %y, i64 %ys, i64 1, ptr %a, i64 0, i64 0, ptr %x, i64 0, i64 0, $T 0.0)
  br label %call
call:
  %r = select i1 %rows, i64 %k, i64 %m
  %c = select i1 %rows, i64 %m, i64 %k
  %t = select i1 %rows, i8 84, i8 78
  store i8 %t, ptr %char
  %p.r = call ptr @int(ptr %ints, i64 0, i64 %r)
  %p.c = call ptr @int(ptr %ints, i64 1, i64 %c)
  %p.ld = call ptr @int(ptr %ints, i64 2, i64 %ld)
  %p.incx = call ptr @int(ptr %ints, i64 3, i64 %incx)
  %p.incy = call ptr @int(ptr %ints, i64 4, i64 %incy)
  %p.beta = getelementptr $T, ptr %floats, i64 1
  store $T %alpha, ptr %floats
  store $T %beta, ptr %p.beta
  call void @blas_${p}gemv(ptr %char, ptr %p.r, ptr %p.c, ptr %floats, ptr %a, ptr %p.ld, ptr %x, ptr %p.incx, ptr %p.beta, ptr %y, ptr %p.incy)
  br label %end
end:
  br i1 %much, label %ask, label %done
ask:
  %status = call preserve_mostcc i64 @phintys_poll()
  ret i64 %status
done:
  ret i64 0
large:
  ret i64 1
}

; The same in blocks of rows.
define internal i64 @phintys_${p}gemv_blocks(i64 %m, i64 %k, $T %alpha, ptr %y, i64 %ys, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, $T %beta) {
entry:
  %block = call i64 @block(i64 %k, i64 $gemv, i64 64)
  br label %turn
turn:
  %i = phi i64 [0, %entry], [%next, %check]
  %left = sub i64 %m, %i
  %size = call i64 @llvm.smin.i64(i64 %left, i64 %block)
  %y.at = call ptr @place(ptr %y, i64 %i, i64 %ys)
  %a.at = call ptr @place(ptr %a, i64 %i, i64 %as)
  %status = call i64 @phintys_${p}gemv(i64 %size, i64 %k, $T %alpha, ptr %y.at, i64 %ys, ptr %a.at, i64 %as, i64 %au, ptr %x, i64 %xs, $T %beta)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %check, label %out
check:
  %next = add i64 %i, %size
  %more = icmp slt i64 %next, %m
  br i1 %more, label %turn, label %out
out:
  ret i64 %status
}

; a[m, n] += alpha * x[m] * y[n]
define i64 @phintys_${p}ger(i64 %m, i64 %n, $T %alpha, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, ptr %y, i64 %ys) {
  %ints = alloca [5 x i32]
  %float = alloca $T
  %work = mul i64 %m, %n
  %much = icmp ugt i64 %work, $long
  br i1 %much, label %look, label %whole
look:
  %huge = call i1 @huge(i64 %work, i64 $gemv, i64 %m, i64 64)
  br i1 %huge, label %blocks, label %whole
blocks:
  %several = call i64 @phintys_${p}ger_blocks(i64 %m, i64 %n, $T %alpha, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, ptr %y, i64 %ys)
  ret i64 %several
whole:
  %la = call i64 @layout(i64 %m, i64 %n, i64 %as, i64 %au)
  %incx = call i64 @step(i64 %m, i64 %xs)
  %incy = call i64 @step(i64 %n, i64 %ys)
  %both = mul i64 %incx, %incy
  %all = mul i64 %la, %both
  %can = icmp ne i64 %all, 0
  br i1 %can, label %blas, label %loops
loops:
  %looped = call i64 @plain(i64 %m, i64 %n, i64 1, $T %alpha, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, i64 1, ptr %y, i64 1, i64 %ys, $T 1.0)
  ret i64 %looped
blas:
  %rows = icmp eq i64 %la, 1
  %ld.r = call i64 @leading(i64 %m, i64 %n, i64 %as)
  %ld.c = call i64 @leading(i64 %n, i64 %m, i64 %au)
  %ld = select i1 %rows, i64 %ld.r, i64 %ld.c
  %fit1 = call i1 @fit(i64 %m, i64 %n, i64 %ld, i64 %incx)
  br i1 %fit1, label %second, label %large
second:
  %fit2 = call i1 @fit(i64 %incy, i64 0, i64 0, i64 0)
  br i1 %fit2, label %call, label %large
call:
  %p.m = call ptr @int(ptr %ints, i64 0, i64 %m)
  %p.n = call ptr @int(ptr %ints, i64 1, i64 %n)
  %p.ld = call ptr @int(ptr %ints, i64 2, i64 %ld)
  %p.incx = call ptr @int(ptr %ints, i64 3, i64 %incx)
  %p.incy = call ptr @int(ptr %ints, i64 4, i64 %incy)
  store $T %alpha, ptr %float
  br i1 %rows, label %turned, label %straight
turned:
  call void @blas_${p}ger(ptr %p.n, ptr %p.m, ptr %float, ptr %y, ptr %p.incy, ptr %x, ptr %p.incx, ptr %a, ptr %p.ld)
  br label %end
straight:
  call void @blas_${p}ger(ptr %p.m, ptr %p.n, ptr %float, ptr %x, ptr %p.incx, ptr %y, ptr %p.incy, ptr %a, ptr %p.ld)
  br label %end
end:
  br i1 %much, label %ask, label %done
ask:
  %status = call preserve_mostcc i64 @phintys_poll()
  ret i64 %status
done:
  ret i64 0
large:
  ret i64 1
}

; The same in blocks of rows.
define internal i64 @phintys_${p}ger_blocks(i64 %m, i64 %n, $T %alpha, ptr %a, i64 %as, i64 %au, ptr %x, i64 %xs, ptr %y, i64 %ys) {
entry:
  %block = call i64 @block(i64 %n, i64 $gemv, i64 64)
  br label %turn
turn:
  %i = phi i64 [0, %entry], [%next, %check]
  %left = sub i64 %m, %i
  %size = call i64 @llvm.smin.i64(i64 %left, i64 %block)
  %a.at = call ptr @place(ptr %a, i64 %i, i64 %as)
  %x.at = call ptr @place(ptr %x, i64 %i, i64 %xs)
  %status = call i64 @phintys_${p}ger(i64 %size, i64 %n, $T %alpha, ptr %a.at, i64 %as, i64 %au, ptr %x.at, i64 %xs, ptr %y, i64 %ys)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %check, label %out
check:
  %next = add i64 %i, %size
  %more = icmp slt i64 %next, %m
  br i1 %more, label %turn, label %out
out:
  ret i64 %status
}

; r = alpha * x[k] @ y[k] + beta * r
define i64 @phintys_${p}dot(i64 %k, $T %alpha, ptr %r, ptr %x, i64 %xs, ptr %y, i64 %ys, $T %beta) {
  %ints = alloca [3 x i32]
  %incx = call i64 @step(i64 %k, i64 %xs)
  %incy = call i64 @step(i64 %k, i64 %ys)
  %both = mul i64 %incx, %incy
  %fresh = fcmp oeq $T %beta, 0.0
  %one = fcmp oeq $T %alpha, 1.0
  %simple = and i1 %fresh, %one
  %valid = icmp ne i64 %both, 0
  %can = and i1 %valid, %simple
  br i1 %can, label %blas, label %loops
loops:
  %looped = call i64 @plain(i64 1, i64 1, i64 %k, $T %alpha, ptr %r, i64 1, i64 1, ptr %x, i64 0, i64 %xs, ptr %y, i64 %ys, i64 0, $T %beta)
  ret i64 %looped
blas:
  %fit = call i1 @fit(i64 %k, i64 %incx, i64 %incy, i64 0)
  br i1 %fit, label %call, label %large
call:
  %p.incx = call ptr @int(ptr %ints, i64 1, i64 %incx)
  %p.incy = call ptr @int(ptr %ints, i64 2, i64 %incy)
  br label %turn
turn:
  %i = phi i64 [0, %call], [%next, %check]
  %sum = phi $T [-0.0, %call], [%v, %check]
  %left = sub i64 %k, %i
  %size = call i64 @llvm.smin.i64(i64 %left, i64 $gemv)
  %x.at = call ptr @place(ptr %x, i64 %i, i64 %incx)
  %y.at = call ptr @place(ptr %y, i64 %i, i64 %incy)
  %p.k = call ptr @int(ptr %ints, i64 0, i64 %size)
  %part = call $T @blas_${p}dot(ptr %p.k, ptr %x.at, ptr %p.incx, ptr %y.at, ptr %p.incy)
  %v = fadd $T %sum, %part
  %much = icmp ugt i64 %size, $long
  br i1 %much, label %ask, label %check
ask:
  %status = call preserve_mostcc i64 @phintys_poll()
  %good = icmp eq i64 %status, 0
  br i1 %good, label %check, label %large
check:
  %next = add i64 %i, %size
  %more = icmp slt i64 %next, %k
  br i1 %more, label %turn, label %store
store:
  store $T %v, ptr %r
  ret i64 0
large:
  ret i64 1
}
