// expect: E0268
break;
