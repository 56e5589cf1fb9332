; Copies of arrays in any memory layout into fresh memory in C order.  Strides are in bytes.
; What copies elements of one size is made by strided.py, as are numbers after a dollar sign.

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.abs.i64(i64, i1)
declare i64 @llvm.smin.i64(i64, i64)

; The axis that is copied together with the last one: where the last one is not the nearest in
; memory, the axis that is, else the one before the last.
define internal i64 @partner(i64 %rank, ptr %dims, ptr %strides) noinline {
entry:
  %last = sub i64 %rank, 1
  %before = sub i64 %rank, 2
  %last.at = getelementptr i64, ptr %strides, i64 %last
  %last.stride = load i64, ptr %last.at
  %least = call i64 @llvm.abs.i64(i64 %last.stride, i1 0)
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %look]
  %best = phi i64 [%before, %entry], [%best.new, %look]
  %size = phi i64 [%least, %entry], [%size.new, %look]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %look, label %done
look:
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride.at
  %distance = call i64 @llvm.abs.i64(i64 %stride, i1 0)
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at
  %several = icmp sgt i64 %dim, 1
  %moves = icmp ne i64 %stride, 0
  %nearer = icmp slt i64 %distance, %size
  %some = and i1 %several, %moves
  %take = and i1 %some, %nearer
  %best.new = select i1 %take, i64 %i, i64 %best
  %size.new = select i1 %take, i64 %distance, i64 %size
  %next = add i64 %i, 1
  br label %test
done:
  ret i64 %best
}

; Two axes: rows of elements next to each other, tiles where the rows are the nearer ones and there
; are many (they use up the cache lines of a column before these are gone; squares use them up at
; once, so that tiles of squares may be wide), or any.
define internal void @plane(ptr %to, ptr %from, i64 %item, i64 %rows, i64 %length, i64 %to.row, i64 %row, i64 %step) noinline {
entry:
  %next.to = icmp eq i64 %step, %item
  br i1 %next.to, label %test, label %other
test:
  %i = phi i64 [0, %entry], [%next, %copy]
  %more = icmp slt i64 %i, %rows
  br i1 %more, label %copy, label %done
copy:
  %to.offset = mul i64 %i, %to.row
  %from.offset = mul i64 %i, %row
  %to.at = getelementptr i8, ptr %to, i64 %to.offset
  %from.at = getelementptr i8, ptr %from, i64 %from.offset
  %bytes = mul i64 %length, %item
  call void @llvm.memcpy.p0.p0.i64(ptr %to.at, ptr %from.at, i64 %bytes, i1 false)
  %next = add i64 %i, 1
  br label %test
other:
  %row.size = call i64 @llvm.abs.i64(i64 %row, i1 0)
  %step.size = call i64 @llvm.abs.i64(i64 %step, i1 0)
  %nearer = icmp slt i64 %row.size, %step.size
  %moves = icmp ne i64 %row, 0
  %size = mul i64 %rows, %length
  %many = icmp sge i64 %size, $large
  %several = icmp sge i64 %rows, $height
  %apart = and i1 %moves, %several
  %crosswise = and i1 %nearer, %apart
  %tiled = and i1 %crosswise, %many
  %height = select i1 %tiled, i64 $height, i64 %rows
  %squares = icmp eq i64 %row, %item
  %most = select i1 %squares, i64 $width, i64 $height
  %width = select i1 %tiled, i64 %most, i64 %length
  br label %down
down:
  %y = phi i64 [0, %other], [%y.next, %down.next]
  %rows.left = sub i64 %rows, %y
  %here = call i64 @llvm.smin.i64(i64 %rows.left, i64 %height)
  %y.more = icmp sgt i64 %rows.left, 0
  br i1 %y.more, label %across, label %done
across:
  %x = phi i64 [0, %down], [%x.next, %tile]
  %left = sub i64 %length, %x
  %along = call i64 @llvm.smin.i64(i64 %left, i64 %width)
  %x.more = icmp sgt i64 %left, 0
  br i1 %x.more, label %tile, label %down.next
tile:
  %y.to = mul i64 %y, %to.row
  %x.to = mul i64 %x, %item
  %tile.to = add i64 %y.to, %x.to
  %y.from = mul i64 %y, %row
  %x.from = mul i64 %x, %step
  %tile.from = add i64 %y.from, %x.from
  %tile.to.at = getelementptr i8, ptr %to, i64 %tile.to
  %tile.from.at = getelementptr i8, ptr %from, i64 %tile.from
  call void @tile(ptr %tile.to.at, ptr %tile.from.at, i64 %item, i64 %here, i64 %along, i64 %to.row, i64 %row, i64 %step)
  %x.next = add i64 %x, %width
  br label %across
down.next:
  %y.next = add i64 %y, %height
  br label %down
done:
  ret void
}

define internal void @tile(ptr %to, ptr %from, i64 %item, i64 %rows, i64 %length, i64 %to.row, i64 %row, i64 %step) {
  switch i64 %item, label %done [i64 1, label %item1 i64 2, label %item2 i64 4, label %item4 i64 8, label %item8]
item1:
  call void @tile1(ptr %to, ptr %from, i64 %rows, i64 %length, i64 %to.row, i64 %row, i64 %step)
  br label %done
item2:
  call void @tile2(ptr %to, ptr %from, i64 %rows, i64 %length, i64 %to.row, i64 %row, i64 %step)
  br label %done
item4:
  call void @tile4(ptr %to, ptr %from, i64 %rows, i64 %length, i64 %to.row, i64 %row, i64 %step)
  br label %done
item8:
  call void @tile8(ptr %to, ptr %from, i64 %rows, i64 %length, i64 %to.row, i64 %row, i64 %step)
  br label %done
done:
  ret void
}

; Copy a whole array of at least one element.  1: done; 0: there are no loops for elements so large.
define i32 @strided(ptr %to, ptr %from, i64 %rank, ptr %dims, ptr %strides, i64 %item) {
entry:
  %own = alloca i64, i64 %rank
  %counts = alloca i64, i64 %rank
  %last = sub i64 %rank, 1
  %fits = icmp sle i64 %item, 8
  br i1 %fits, label %row, label %left
left:
  ret i32 0
row:
  %r = phi i64 [%last, %entry], [%r.next, %row]
  %size = phi i64 [%item, %entry], [%size.next, %row]
  %own.at = getelementptr i64, ptr %own, i64 %r
  store i64 %size, ptr %own.at
  %count.at = getelementptr i64, ptr %counts, i64 %r
  store i64 0, ptr %count.at
  %r.dim.at = getelementptr i64, ptr %dims, i64 %r
  %r.dim = load i64, ptr %r.dim.at
  %size.next = mul i64 %size, %r.dim
  %r.next = sub i64 %r, 1
  %rows.left = icmp sge i64 %r.next, 0
  br i1 %rows.left, label %row, label %plan
plan:
  %length.at = getelementptr i64, ptr %dims, i64 %last
  %length = load i64, ptr %length.at
  %step.at = getelementptr i64, ptr %strides, i64 %last
  %step = load i64, ptr %step.at
  %vector = icmp eq i64 %rank, 1
  br i1 %vector, label %line, label %planes
line:
  call void @plane(ptr %to, ptr %from, i64 %item, i64 1, i64 %length, i64 %item, i64 %item, i64 %step)
  ret i32 1
planes:
  %axis = call i64 @partner(i64 %rank, ptr %dims, ptr %strides)
  %rows.at = getelementptr i64, ptr %dims, i64 %axis
  %rows = load i64, ptr %rows.at
  %row.at = getelementptr i64, ptr %strides, i64 %axis
  %row.stride = load i64, ptr %row.at
  %to.row.at = getelementptr i64, ptr %own, i64 %axis
  %to.row = load i64, ptr %to.row.at
  br label %turn
turn:
  %to.now = phi ptr [%to, %planes], [%to.new, %go]
  %from.now = phi ptr [%from, %planes], [%from.new, %go]
  call void @plane(ptr %to.now, ptr %from.now, i64 %item, i64 %rows, i64 %length, i64 %to.row, i64 %row.stride, i64 %step)
  br label %carry
carry:  ; the next place along the other axes, the innermost of them first
  %k = phi i64 [%last, %turn], [%j, %which], [%j, %back]
  %to.at = phi ptr [%to.now, %turn], [%to.at, %which], [%to.back, %back]
  %from.at = phi ptr [%from.now, %turn], [%from.at, %which], [%from.back, %back]
  %j = sub i64 %k, 1
  %over = icmp slt i64 %j, 0
  br i1 %over, label %done, label %which
which:
  %skip = icmp eq i64 %j, %axis
  br i1 %skip, label %carry, label %advance
advance:
  %j.count.at = getelementptr i64, ptr %counts, i64 %j
  %j.count = load i64, ptr %j.count.at
  %j.new = add i64 %j.count, 1
  %j.dim.at = getelementptr i64, ptr %dims, i64 %j
  %j.dim = load i64, ptr %j.dim.at
  %j.own.at = getelementptr i64, ptr %own, i64 %j
  %j.own = load i64, ptr %j.own.at
  %j.stride.at = getelementptr i64, ptr %strides, i64 %j
  %j.stride = load i64, ptr %j.stride.at
  %inside = icmp slt i64 %j.new, %j.dim
  br i1 %inside, label %go, label %back
go:
  store i64 %j.new, ptr %j.count.at
  %to.new = getelementptr i8, ptr %to.at, i64 %j.own
  %from.new = getelementptr i8, ptr %from.at, i64 %j.stride
  br label %turn
back:
  store i64 0, ptr %j.count.at
  %to.total = mul i64 %j.count, %j.own
  %from.total = mul i64 %j.count, %j.stride
  %to.minus = sub i64 0, %to.total
  %from.minus = sub i64 0, %from.total
  %to.back = getelementptr i8, ptr %to.at, i64 %to.minus
  %from.back = getelementptr i8, ptr %from.at, i64 %from.minus
  br label %carry
done:
  ret i32 1
}
